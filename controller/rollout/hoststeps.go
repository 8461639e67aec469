package rollout

import (
	"reflect"
	"slices"
	"time"

	"wmco/controller/status"
)

// StepPause is the minimum time between two status writes that change only messages of hosts. While hosts join, these
// change with every call.
const StepPause = 5 * time.Second

// stepsDelay is how long the messages of hosts are left as they are in the cluster.
func (t *statusReporter) stepsDelay() time.Duration { return t.stepped.Add(StepPause).Sub(t.now()) }

// sameHost reports whether two rows of a host are equal.
func sameHost(a, b status.Host) bool { return reflect.DeepEqual(a, b) }

// sameButMessages reports whether two statuses say the same but for the messages of hosts.
func sameButMessages(a, b status.Status) bool {
	return reflect.DeepEqual(withoutMessages(a), withoutMessages(b))
}

// withoutMessages returns the status without the messages of hosts.
func withoutMessages(s status.Status) status.Status {
	s.Hosts = slices.Clone(s.Hosts)
	for i := range s.Hosts {
		s.Hosts[i].Message = ""
	}
	return s
}
