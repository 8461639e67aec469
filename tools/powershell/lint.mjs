// Parses PowerShell files, and what Markdown pages let people type into PowerShell, with tree-sitter's grammar and prints every
// syntax error. It does not check commands and parameters.
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

// What begins like this in an indented block or in inline code of a page is for PowerShell: a cmdlet, or a program of Windows.
const command = /^(?:\$\w+ = |& )?(?:[A-Z][a-z]+-[A-Z]\w+|(?:reg|icacls|netsh|route|sc\.exe|powershell\.exe) .)/;

// The pieces of PowerShell in a file, each with the lines before it: a whole script, or the blocks and the inline code of a page.
function* pieces(file, text) {
  if (!file.endsWith('.md')) {
    yield { before: 0, text: text.replace(tags, '') };
    return;
  }
  let block = null;
  const lines = [...text.split('\n'), ''];
  for (const [i, line] of lines.entries()) {
    const fence = line.match(/^\s*```(\w*)/);
    if (fence && !block?.fenced) {
      block = { before: i + 1, lines: [], fenced: true, shell: ['powershell', 'pwsh', 'ps1'].includes(fence[1]) };
    } else if (block?.fenced ? !fence : /^(\t| {4,})\S/.test(line)) {
      block ??= { before: i, lines: [] };
      block.lines.push(line.trimStart());
    } else {
      if (block && (block.fenced ? block.shell : block.lines.some((l) => command.test(l)))) {
        yield { before: block.before, text: block.lines.join('\n') };
      }
      block = null;
      for (const [, code] of line.matchAll(/`([^`]+)`/g)) {
        if (command.test(code)) {
          yield { before: i, text: code };
        }
      }
    }
  }
}

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
let fromPages = 0;
for (const file of files) {
  const places = [];
  for (const { before, text } of pieces(file, readFileSync(file, 'utf8'))) {
    fromPages += file.endsWith('.md') ? 1 : 0;
    const found = places.length;
    if (text.trim() === '') {
      places.push(`${file}: is empty`);
    }
    // The grammar reads leftovers of a template as blocks.
    for (const [, rest] of text.matchAll(/(\{\{.*)/g)) {
      places.push(`${file}: holds a template's action: ${JSON.stringify(rest.slice(0, 60))}`);
    }
    const tree = parser.parse(text);
    for (const { node, what } of broken(tree.rootNode)) {
      places.push(`${file}:${before + node.startPosition.row + 1}:${node.startPosition.column + 1}: ${what}`);
    }
    if (tree.rootNode.hasError && places.length === found) {
      places.push(`${file}:${before + 1}: cannot be parsed`);
    }
  }
  places.forEach((place) => console.error(place));
  failed ||= places.length > 0;
}
if (!failed) {
  console.error(`${files.length} files, ${fromPages} pieces of PowerShell in pages`);
}
process.exit(failed ? 1 : 0);
