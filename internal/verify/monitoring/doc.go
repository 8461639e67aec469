// Package monitoring tests what deploy/monitoring and deploy/dashboard have: Prometheus' own promtool parses and tests
// the rules, and every metric that a rule or a panel names is one that an endpoint serves.
package monitoring
