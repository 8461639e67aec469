package configure

import (
	"fmt"
	"strings"

	"wmco/layout"
)

// RemovedByForce lists what stays on the host of an instance whose Node was deleted while the host could not be cleaned
// up, because of err.
func RemovedByForce(address string, err error) Progress {
	return Progress{
		State: StateGone, Finished: true, Err: err,
		Message: fmt.Sprintf("the Node was deleted by force, and the host %s was not cleaned up: what was installed "+
			"stays there, which is %s and the services %s (%v)",
			address, layout.DirRoot, strings.Join(layout.ServiceNames(), ", "), err),
		Fix: "reinstall Windows on the host; or add its entry to " + InstancesName +
			" again when it can be reached, and remove it once the node is Ready",
	}
}
