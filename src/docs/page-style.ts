// The stylesheet of the reference and the guide: system fonts, and the system's light or dark colour scheme.

export const PAGE_STYLE = `
:root {
  --ink: #1b1f24; --soft: #5c6570; --line: #e2e5e9; --paper: #fff; --tint: #f6f7f9; --link: #0b5cad;
  --get: #0a6b4f; --post: #1d4fa3; --put: #8a4b00; --key: #7a2e8e; --number: #a13d00;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e7eb; --soft: #9aa4af; --line: #2c333b; --paper: #14181d; --tint: #1b2127; --link: #7db4f0;
    --get: #5fd0a5; --post: #86b3f5; --put: #e5ad66; --key: #d3a0e6; --number: #eda274;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; display: grid; grid-template-columns: 20rem minmax(0, 1fr); color: var(--ink); background: var(--paper);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
a { color: var(--link); text-underline-offset: .15em; }
nav a { text-decoration: none; }
.site a:hover, nav a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.site { grid-column: 1 / -1; display: flex; gap: 1.5rem; align-items: baseline; padding: .7rem clamp(1rem, 4vw, 2.5rem);
  border-bottom: 1px solid var(--line); font-size: .9rem; line-height: 1.55; }
.site nav { display: flex; gap: 1.2rem; margin-left: auto; }
.site a { color: var(--soft); text-decoration: none; }
.site .home { color: var(--ink); font-weight: 650; }
.skip:not(:focus) { position: absolute; left: -100vw; }
.contents { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.75rem 1.25rem 2rem; background: var(--tint);
  border-right: 1px solid var(--line); font-size: .84rem; line-height: 1.45; }
nav ul { list-style: none; margin: .25rem 0 0; padding: 0; }
nav li a { display: flex; align-items: baseline; padding: .14rem 0; color: var(--ink); }
nav li a span:last-child { min-width: 0; overflow-wrap: break-word; }
nav h6 { margin: 1.1rem 0 0; font-size: .78rem; }
nav h6 a { color: var(--soft); }
main { overflow-wrap: break-word; padding: 2.5rem clamp(1.25rem, 5vw, 4.5rem) 6rem; max-width: 62rem; }
main p, main ul, main ol { margin: .5rem 0; max-width: 46rem; }
h1, h2 { line-height: 1.2; letter-spacing: -.01em; }
h1 { margin: 0; font-size: 2rem; }
h2 { margin: 3.5rem 0 .5rem; padding-top: 1.25rem; border-top: 1px solid var(--line); font-size: 1.45rem; }
.introduction h2 { margin: 1.9rem 0 .3rem; padding: 0; border: 0; font-size: 1.15rem; }
h3 { margin: 0 0 .5rem; font-size: 1.08rem; overflow-wrap: break-word; }
h3 em { margin-left: .4rem; color: var(--soft); font-size: .8rem; font-style: normal; font-weight: 400; white-space: nowrap; }
h4 { margin: 1.4rem 0 .35rem; font-size: .9rem; }
h5 { margin: .8rem 0 .2rem; color: var(--soft); font-size: .82rem; font-weight: 500; }
.samples { margin-top: 1rem; }
.samples pre { white-space: pre; overflow-wrap: normal; }
.operation { margin: 2.25rem 0 3rem; }
.method, .status { color: var(--soft); font: 600 .78em var(--mono); text-transform: uppercase; }
nav .method { flex: 0 0 4.2rem; }
.method.get { color: var(--get); }
.method.post { color: var(--post); }
.method.put { color: var(--put); }
code { padding: .1em .3em; border-radius: 4px; background: var(--tint); font: .875em var(--mono); overflow-wrap: break-word; }
h3 code, td code { padding: 0; background: none; }
i, .links, .errors em { color: var(--soft); font-style: normal; }
table { width: 100%; margin: .6rem 0 1rem; border-collapse: collapse; font-size: .9rem; line-height: 1.5; }
th, td { padding: .42rem .9rem .42rem 0; border-bottom: 1px solid var(--line); vertical-align: top; text-align: left; }
th { color: var(--soft); font-weight: 500; }
td:first-child { width: 34%; }
td:nth-child(2) { width: 22%; }
.errors td:first-child { width: 4rem; }
.errors td:nth-child(2) { width: 15rem; }
tr:target td, section:target h3 { background: var(--tint); }
pre { margin: .6rem 0 1rem; padding: .85rem 1rem; border-radius: 8px; background: var(--tint); overflow-x: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; font: .82rem/1.55 var(--mono); }
pre b { color: var(--key); font-weight: 400; }
pre s { color: var(--get); text-decoration: none; }
pre u { color: var(--number); text-decoration: none; }
summary { color: var(--link); cursor: pointer; font-size: .88rem; }
.errors-of > span { margin-right: .8rem; font-size: .86rem; }
.contents [open] summary { margin-bottom: .5rem; }
@media (width > 60rem) {
  @supports selector(::details-content) {
    .contents summary { display: none; }
    .contents ::details-content { content-visibility: visible; }
  }
}
@media (max-width: 60rem) {
  body { display: block; }
  .contents { position: static; height: auto; padding: .6rem 1.25rem; border-right: 0; border-bottom: 1px solid var(--line); }
}
@media (max-width: 40rem) {
  thead { display: none; }
  td, td:first-child, td:nth-child(2) { display: block; width: auto; padding: .15rem 0; border: 0; }
  tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
}
@media print { .site, nav { display: none; } body { display: block; } }
`;
