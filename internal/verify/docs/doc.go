// Package docs checks the documents of the repository as CommonMark reads them: every link leads to a file and a
// heading that exist, and every manifest that a page shows is a file of docs/examples. Its tests are all that it has.
package docs
