// The site of docs: the same files as in the repository, with a search that needs no server. make docs copies this file to
// bin/tools/site/.vitepress and docs to bin/tools/site/docs, and runs vitepress there.
import { readdirSync } from 'node:fs'

// SOURCES is the URL of the sources, below which links that leave docs go. Without it they are shown as text.
const sources = process.env.SOURCES ?? ''
const pages = new Set(readdirSync('docs', { recursive: true }).filter((f) => f.endsWith('.md')))

// resolve returns the path of a link below docs; it begins with ../ where it leaves docs.
function resolve(page, target) {
  const parts = page.split('/').slice(0, -1)
  let above = 0
  for (const part of target.split('/')) {
    if (part === '..') parts.length ? parts.pop() : above++
    else if (part !== '.' && part !== '') parts.push(part)
  }
  return '../'.repeat(above) + parts.join('/')
}

// outside makes links to files that are no pages lead to the sources.
function outside(md) {
  const open = md.renderer.rules.link_open ?? ((tokens, i, options, env, self) => self.renderToken(tokens, i, options))
  md.renderer.rules.link_open = (tokens, i, options, env, self) => {
    const href = tokens[i].attrGet('href')
    if (href && !/^([a-z]+:|#)/.test(href)) {
      const [target] = href.split('#')
      const path = resolve(env.relativePath, decodeURI(target))
      if (!pages.has(path)) {
        if (!sources) {
          tokens[i].attrs = []
          return self.renderToken(tokens, i, options)
        }
        tokens[i].attrSet('href', sources.replace(/\/$/, '') + '/' + (path.startsWith('../') ? path.slice(3) : 'docs/' + path))
        return self.renderToken(tokens, i, options)
      }
    }
    return open(tokens, i, options, env, self)
  }
}

const item = (text, link) => ({ text, link })

export default {
  title: 'wmco',
  description: 'Windows machines as worker nodes of OKD and OpenShift clusters',
  srcDir: 'docs',
  cleanUrls: false,
  ignoreDeadLinks: false,
  rewrites: { 'README.md': 'index.md', 'gitops/README.md': 'gitops/index.md' },
  // A word in angle brackets is text, as on GitHub.
  markdown: { html: true, config: outside, anchor: { slugify } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: [
      { text: 'Begin', items: [item('By task', '/'), item('Prerequisites', '/prerequisites'), item('Install', '/install'), item('OKD, from nothing to a Pod', '/okd'), item('From the existing operator', '/takeover'), item('Limits', '/limits')] },
      { text: 'Platforms', items: ['aws', 'azure', 'gcp', 'vsphere', 'nutanix', 'none', 'others'].map((p) => item({ aws: 'AWS', azure: 'Azure', gcp: 'Google Cloud', vsphere: 'vSphere', nutanix: 'Nutanix', none: 'Your own hosts', others: 'Others' }[p], '/platforms/' + p)) },
      { text: 'Use', items: [item('Workloads', '/workloads'), item('Mirrors', '/mirrors'), item('Disconnected', '/disconnected'), item('Pull requests', '/gitops/'), item('Updates of Windows', '/windows-updates'), item('Monitoring', '/monitoring')] },
      { text: 'Operate', items: [item('Operations', '/operations'), item('How machines join and leave', '/joining'), item('Troubleshooting', '/troubleshooting'), item('Ways into a node', '/access'), item('Security', '/security'), item('Scale', '/scale')] },
      { text: 'Look up', items: [item('Commands', '/cli'), item('Findings', '/findings'), item('Reasons', '/reasons'), item('Files of a node', '/node-layout'), item('Executables', '/payload'), item('The node program', '/node-program'), item('Architecture', '/architecture'), item('Releases', '/release')] },
    ],
  },
}

// slugify makes the anchors of headings that GitHub makes: links of the documents are written for those.
function slugify(text) {
  return text.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-')
}
