package jointest_test

import (
	"os"
	"path/filepath"
	"testing"

	"wmco/internal/hostsim/folderhost"
	"wmco/internal/hostsim/simulation"
)

// TestAHostThatIsRefusedSaysWhatItLacks: the kubelet does not start, because another program has its port. The Event has the finding of preflight,
// and what it says helps.
func TestAHostThatIsRefusedSaysWhatItLacks(t *testing.T) {
	w := newWorld(t)
	m := w.machine("instance-lacks", "192.0.2.149")
	port := filepath.Join(m.ssh.Root, folderhost.FileSystem)
	must(t, os.WriteFile(port, []byte(`{"ports": [{"number": 10250, "state": "taken"}]}`), 0o600))
	must(t, m.Behave(func(s *simulation.Script) {
		s.Services = map[string]simulation.Behaviour{"kubelet": {Start: simulation.StartExits}}
	}))
	w.instances("192.0.2.149")
	stop := w.operate()
	w.says(fails, "windows-instances", "192.0.2.149", "RolledBack", "the host lacks: ", "PortTaken: a program listens on TCP port 10250", "fix: find it with `netstat -abno`")

	must(t, os.Remove(port))
	must(t, m.Behave(func(s *simulation.Script) { s.Services = nil }))
	stop() // a new operator tries it at once
	w.operate()
	w.allJoin([]string{"instance-lacks"})
}
