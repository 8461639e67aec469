// Package olmtest tests the OLM bundle with OLM itself: its operators and its catalog server run against a real control
// plane, and unpack, install, hold up, upgrade and remove what deploy/olm makes.
//
//	deploy --olm.Bundle, olm.Catalog--> folders --opm serve--> catalog --> InstallPlan --> olm --> Deployment --> wmco operator
//	                                       '---- the command of OLM's Job --'                        (its account, arguments, environment)
//
// A kubelet is all that is missing: Pods of the one node are Running at once. OLM listens on fixed ports, so that the
// tests run in a network of their own. `make test-olm` builds the programs; without them, the tests are skipped.
package olmtest
