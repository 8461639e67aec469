// Package prometheus holds deploy/monitoring and deploy/dashboard to Prometheus: its operator's types decode the
// objects without an unknown field, and its query engine evaluates each panel of the dashboard with the samples of
// samples.txt.
//
// A panel without data is an error. Tests hold the labels that rules, panels and samples name to those that are served,
// as internal/verify/monitoring/testdata records them.
package prometheus
