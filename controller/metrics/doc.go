// Package metrics serves numbers about the Windows nodes to Prometheus: over TLS as the cluster's profile asks for, and
// to those who may read them.
//
//	Nodes (cache), WindowsNodesStatus (API server) --Collector--> gauges, computed at each scrape
//	joins, failed attempts, published bytes        --Counters---> events that no object has; they begin at zero with the process
//	request --TLS--> NewAccessFilter (TokenReview, SubjectAccessReview) --> /metrics of controller-runtime
//
// No metric holds a text that a host reports: labels are names of nodes, and words of closed sets.
package metrics
