package services

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestServicePrograms(t *testing.T) {
	tests := map[string]struct {
		argv []string
		want []string
	}{
		"a program": {[]string{`C:\k\Containerd.EXE`, "--run-service"}, []string{`c:\k\containerd.exe`}},
		"a wrapper and its program": {
			[]string{`C:\k\kube-log-runner.exe`, `-log-file=C:\var\log\x.exe`, `C:\k\kubelet.exe`, `--config=C:\k\kubelet.conf`},
			[]string{`c:\k\kube-log-runner.exe`, `c:\k\kubelet.exe`},
		},
		"a program twice":         {[]string{`C:\k\x.exe`, `C:\K\X.exe`}, []string{`c:\k\x.exe`}},
		"a name without a folder": {[]string{`cmd.exe`, "/c"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, servicePrograms(tt.argv)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestServiceProcesses(t *testing.T) {
	const runner, kubelet, containerd, shim = `C:\k\kube-log-runner.exe`, `C:\k\kubelet.exe`, `C:\k\containerd\containerd.exe`, `C:\k\containerd\shim.exe`
	wrapped, alone := servicePrograms([]string{runner, kubelet}), servicePrograms([]string{containerd})
	p := func(id, parent uint32, program string, age int) process {
		return process{ID: id, Parent: parent, Program: program, Created: time.Unix(int64(1000-age), 0)}
	}
	services := p(4, 1, `C:\Windows\System32\services.exe`, 900)
	tests := map[string]struct {
		all      []process
		main     uint32
		programs []string
		want     []uint32
	}{
		"a service of one process": {[]process{services, p(10, 4, containerd, 9)}, 10, alone, []uint32{10}},
		"a wrapper and its program": {
			[]process{services, p(10, 4, runner, 9), p(11, 10, kubelet, 8), p(12, 11, kubelet, 7)}, 10, wrapped, []uint32{10, 11, 12},
		},
		"the shims of containerd outlive it": {
			[]process{services, p(10, 4, containerd, 9), p(11, 10, shim, 8), p(12, 11, shim, 7)}, 10, alone, []uint32{10},
		},
		"a descendant through another program": {
			[]process{services, p(10, 4, runner, 9), p(11, 10, `C:\Windows\System32\cmd.exe`, 8), p(12, 11, kubelet, 7)}, 10, wrapped, []uint32{10, 12},
		},
		"the id of the parent is reused": {
			[]process{services, p(10, 4, runner, 5), p(11, 10, kubelet, 8)}, 10, wrapped, []uint32{10},
		},
		"the same program outside of the service": {
			[]process{services, p(10, 4, runner, 9), p(20, 4, kubelet, 8)}, 10, wrapped, []uint32{10},
		},
		"two processes with each other as parent": {
			[]process{services, p(10, 4, runner, 9), p(20, 21, kubelet, 8), p(21, 20, kubelet, 8)}, 10, wrapped, []uint32{10},
		},
		"left by a dead wrapper": {
			[]process{services, p(11, 10, kubelet, 8)}, 0, wrapped, []uint32{11},
		},
		"left by a dead wrapper whose id is reused": {
			[]process{services, p(10, 4, `C:\x.exe`, 1), p(11, 10, kubelet, 8)}, 0, wrapped, []uint32{11},
		},
		"run by hand, without a main process": {
			[]process{services, p(30, 4, `C:\Windows\System32\cmd.exe`, 9), p(31, 30, kubelet, 8)}, 0, wrapped, nil,
		},
		"left, in another folder": {
			[]process{services, p(11, 10, `C:\elsewhere\kubelet.exe`, 8)}, 0, wrapped, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []uint32
			for _, p := range serviceProcesses(tt.all, tt.main, tt.programs) {
				got = append(got, p.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
