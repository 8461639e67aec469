package objects_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// asNobody runs the calling test again as an unprivileged user and reports whether it did: root can read everything.
func asNobody(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	const nobody = 65534
	// The link in /proc works although the test binary's folder is closed to others.
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$")
	cmd.Dir, cmd.Env = "/", []string{"TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return true
}
