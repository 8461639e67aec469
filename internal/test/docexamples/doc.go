// Package docexamples has a real API server take every manifest of docs/examples, as a cluster would. Its tests are all
// that it has.
package docexamples
