// The style of the reference page: the reader's own fonts, light or dark as the reader's system is.
import { Html } from './html.ts';

export const PAGE_STYLE = new Html(`
:root {
  --ink: #1b1f24; --soft: #5c6570; --line: #e2e5e9; --paper: #fff; --tint: #f6f7f9; --link: #0b5cad;
  --get: #0a6b4f; --post: #1d4fa3; --put: #8a4b00; --key: #7a2e8e; --text: #0a6b4f; --number: #a13d00;
  --sans: system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e7eb; --soft: #9aa4af; --line: #2c333b; --paper: #14181d; --tint: #1b2127; --link: #7db4f0;
    --get: #5fd0a5; --post: #86b3f5; --put: #e5ad66; --key: #d3a0e6; --text: #79d3ab; --number: #eda274;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; display: grid; grid-template-columns: 20rem minmax(0, 1fr); color: var(--ink); background: var(--paper);
  font: 1rem/1.6 var(--sans); }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.75rem 1.25rem 2rem; background: var(--tint);
  border-right: 1px solid var(--line); font-size: .84rem; line-height: 1.45; }
nav ul { list-style: none; margin: .25rem 0 0; padding: 0; }
nav li a { display: flex; align-items: baseline; padding: .14rem 0; overflow-wrap: anywhere; color: var(--ink); }
nav .method { flex: 0 0 2.9rem; }
nav h6 { margin: 1.1rem 0 0; font-size: .78rem; letter-spacing: .03em; }
nav h6 a { color: var(--soft); }
nav .home { display: block; margin-bottom: .6rem; color: var(--ink); font-size: 1rem; }
main { padding: 2.5rem clamp(1.25rem, 5vw, 4.5rem) 6rem; max-width: 62rem; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
h1 { margin: 0; font-size: 2rem; line-height: 1.2; letter-spacing: -.015em; }
h2 { margin: 3.5rem 0 .5rem; padding-top: 1.25rem; border-top: 1px solid var(--line); font-size: 1.45rem; letter-spacing: -.01em; }
.introduction h2 { margin: 1.9rem 0 .3rem; padding: 0; border: 0; font-size: 1.15rem; }
.introduction > * { max-width: 46rem; }
h3 { margin: 0 0 .5rem; font-size: 1.08rem; font-weight: 600; line-height: 1.4; overflow-wrap: anywhere; }
h3 code { padding: 0; background: none; font-size: 1em; }
h3 em { margin-left: .4rem; padding: .1rem .5rem; border: 1px solid var(--line); border-radius: 1rem; color: var(--soft);
  font-size: .75rem; font-style: normal; font-weight: 400; white-space: nowrap; }
h4 { margin: 1.4rem 0 .35rem; font-size: .9rem; font-weight: 600; }
p, ul { margin: .5rem 0; }
main > p, .operation > p { max-width: 46rem; }
.links { color: var(--soft); }
.operation { margin: 2.25rem 0 3rem; }
.method { color: var(--get); font: 600 .78em var(--mono); text-transform: uppercase; }
.method.post { color: var(--post); }
.method.put { color: var(--put); }
.method.options { color: var(--soft); }
nav .method.options { font-size: 0; }
nav .method.options::after { content: "OPT"; font-size: .64rem; }
.status { color: var(--soft); font: 600 .85em var(--mono); }
code { padding: .1em .3em; border-radius: 4px; background: var(--tint); font: .875em var(--mono); overflow-wrap: anywhere; }
i { color: var(--soft); font-size: .85em; font-style: normal; font-weight: 400; }
table { width: 100%; margin: .6rem 0 1rem; border-collapse: collapse; font-size: .9rem; line-height: 1.5; }
th { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); color: var(--soft); font-weight: 500; text-align: left; }
td { padding: .42rem .9rem .42rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
td:first-child { width: 34%; }
td:nth-child(2) { width: 22%; }
td code { padding: 0; background: none; }
.errors td:first-child { width: 4rem; }
.errors td:nth-child(2) { width: 15rem; }
.errors em { color: var(--soft); font-style: normal; }
tr:target td, section:target h3 { background: var(--tint); }
pre { margin: .6rem 0 1rem; padding: .85rem 1rem; border-radius: 8px; background: var(--tint); overflow-x: auto;
  font: .82rem/1.55 var(--mono); tab-size: 2; }
pre b { color: var(--key); font-weight: 400; }
pre s { color: var(--text); text-decoration: none; }
pre u { color: var(--number); text-decoration: none; }
details { margin: .4rem 0; }
summary { color: var(--link); cursor: pointer; font-size: .88rem; }
.errors-of { line-height: 1.9; font-size: .86rem; }
.errors-of > span { margin-right: .8rem; }
.errors-of a { color: var(--ink); }
@media (max-width: 60rem) {
  body { display: block; }
  nav { position: static; height: auto; max-height: 45vh; border-right: 0; border-bottom: 1px solid var(--line); }
  td:first-child, td:nth-child(2) { width: auto; }
}
@media print { nav { display: none; } body { display: block; } }
`);
