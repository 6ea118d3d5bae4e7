// Hostile texts that pages must show as text.

export const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  '</title></main><h1>owned</h1>',
  "' onmouseover='alert(1)",
  '<!-- --><![CDATA[ ]]>',
  '&lt;script&gt;&amp;#60;',
  '\u202egnissorg\u202c \u2066isolate',
  '\u0000null\r\n',
  `Z${'\u0301\u0300\u0316'.repeat(30)}algo`,
  'javascript:alert(1) https://example.org',
  '👩‍👩‍👧‍👦🏴‍☠️',
  'null',
  '__proto__',
  'constructor',
  '[object Object]',
  '{{7*7}}',
  'x'.repeat(100),
  'مرحبا',
  '\ud83d\ude00'.repeat(30),
  '<svg/onload=alert(1)>',
];
