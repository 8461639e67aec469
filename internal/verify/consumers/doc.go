// Package consumers reads every rendered file with the code of the program that consumes it on the node: Kubernetes'
// own decoding, defaulting and validation, containerd's `config dump`, the CNI library, client-go and the exporter
// toolkit. It is a module of its own, because the operator must not link any of these.
//
//	golden/cases --rendered--> <case>/want/<node>/C/k/kubelet.conf --path--> consumer --> nil, or why the program would refuse it
//
// The programs run on Windows, this runs on Linux. Where their rules differ by platform, the check notes it and applies
// those of Windows. Nothing here knows what the contents should be: that is what the goldens are for.
package consumers
