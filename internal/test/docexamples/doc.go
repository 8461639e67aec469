// Package docexamples applies every manifest of docs/examples to a real API server. Its tests are all that it has.
package docexamples
