// Parses PowerShell files with tree-sitter's grammar and prints every syntax error. It does not check commands and
// parameters.
//
//	node lint.mjs MODULES FILE...      MODULES is the folder that `npm ci` ran in
//
// Exit status: 0 all files parse, 1 one does not, 2 usage.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const [modules, ...files] = process.argv.slice(2);
if (files.length === 0) {
  console.error('usage: node lint.mjs MODULES FILE...');
  process.exit(2);
}
const { resolve: find } = createRequire(resolve(modules, 'package.json'));
const { Parser, Language } = createRequire(resolve(modules, 'package.json'))('web-tree-sitter');

// The markers with which a cloud's agent finds the script are not part of it. Line numbers stay the same.
const tags = /^<\/?powershell>$|^<persist>true<\/persist>$/gm;

// The innermost errors of the tree.
function* broken(node) {
  if (node.isMissing) {
    yield { node, what: `${node.type} is missing` };
    return;
  }
  let inner = false;
  for (const child of node.children) {
    if (child.hasError || child.isMissing) {
      inner = true;
      yield* broken(child);
    }
  }
  if (node.isError && !inner) {
    yield { node, what: `cannot be parsed: ${JSON.stringify(node.text.slice(0, 60))}` };
  }
}

await Parser.init();
const parser = new Parser();
parser.setLanguage(await Language.load(find('tree-sitter-powershell/tree-sitter-powershell.wasm')));
let failed = false;
for (const file of files) {
  const text = readFileSync(file, 'utf8').replace(tags, '');
  const places = [];
  if (text.trim() === '') {
    places.push(`${file}: is empty`);
  }
  // The grammar reads leftovers of a template as blocks.
  for (const [, rest] of text.matchAll(/(\{\{.*)/g)) {
    places.push(`${file}: holds a template's action: ${JSON.stringify(rest.slice(0, 60))}`);
  }
  const tree = parser.parse(text);
  for (const { node, what } of broken(tree.rootNode)) {
    places.push(`${file}:${node.startPosition.row + 1}:${node.startPosition.column + 1}: ${what}`);
  }
  if (tree.rootNode.hasError && places.length === 0) {
    places.push(`${file}: cannot be parsed`);
  }
  places.forEach((place) => console.error(place));
  failed ||= places.length > 0;
}
process.exit(failed ? 1 : 0);
