// Package mustgather writes the state of the Windows nodes of a cluster to a folder, without secrets.
//
//	objects --without secrets--> cluster-scoped-resources/GROUP/RESOURCE/NAME.yaml, namespaces/NAMESPACE/GROUP/RESOURCE/NAME.yaml
//	layers (Secrets), Nodes ---> nodes/NAME/desired.json, applied.json, report.json, rollout.json: annotations of the Node, readable
//	        '-- compared ------> nodes/NAME/plan.json: the difference of the two
//	kubelet (/logs) -----------> nodes/NAME/ledger.json, logs/...: the managed entries of the host, the log of the node agent
//	Pods ----------------------> namespaces/NAMESPACE/pods/...: the logs of the operator
//	missing data --------------> missing.txt, with the reason
//
// The paths of objects are those of `oc adm inspect`, so `wmco status --from` and `wmco render --from` read the folder
// as any must-gather.
package mustgather
