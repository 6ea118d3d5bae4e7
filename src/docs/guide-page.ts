// GET /agent-guide for browsers: the agents' text as a page.
import { headingId, markdown } from '../html/markdown.ts';
import { documentPage } from './document-page.ts';

export function guidePage(guide: string): string {
  const headings = [...guide.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading);
  return documentPage({
    title: 'Chamber Coordination Service: agent guide',
    home: 'Agent guide',
    navigation: [{ links: headings.map((heading) => ({ href: `#${headingId(heading)}`, content: heading })) }],
    main: markdown(guide),
  });
}
