package plan

import (
	"testing"

	"wmco/bundle"
)

func TestPlansOfServices(t *testing.T) {
	kubelet := func(change func(*ServiceState)) func(*plannedHost) {
		return func(h *plannedHost) { h.observed.changeService("kubelet", change) }
	}
	runPlanCases(t, []planCase{
		{"a service does not exist", func(h *plannedHost) { delete(h.observed.Services, "kubelet") }, []string{
			"put service kubelet: absent, none",
			"start service kubelet: not running, none",
		}},
		{"a service is stopped", kubelet(func(s *ServiceState) { s.Status = ServiceStopped }), []string{"start service kubelet: not running, none"}},
		{"a service is stopped and skipped", func(h *plannedHost) {
			h.observed.changeService("kubelet", func(s *ServiceState) { s.Status = ServiceStopped })
			h.c.Skip = map[bundle.EntryID]bool{"service kubelet": true}
		}, []string{"skipped: service kubelet"}},
		{"the command of a service differs", kubelet(func(s *ServiceState) { s.CommandLine = "other" }), []string{
			"stop service kubelet: restart, restart",
			"put service kubelet: differs, restart",
			"start service kubelet: restart, restart",
		}},
		{"the command of a stopped service differs", kubelet(func(s *ServiceState) { s.CommandLine, s.Status = "other", ServiceStopped }), []string{
			"put service kubelet: differs, none",
			"start service kubelet: not running, none",
		}},
		{"the command of a skipped service differs", func(h *plannedHost) {
			h.observed.changeService("kubelet", func(s *ServiceState) { s.CommandLine = "other" })
			h.c.Skip = map[bundle.EntryID]bool{"service kubelet": true}
		}, []string{"skipped: service kubelet"}},
		{"the command of a service that others need differs", func(h *plannedHost) {
			h.observed.changeService("containerd", func(s *ServiceState) { s.CommandLine = "other" })
		}, []string{
			"stop service kubelet: dependency, drain",
			"stop service containerd: restart, drain",
			"put service containerd: differs, drain",
			"start service containerd: restart, drain",
			"start service kubelet: dependency, drain",
		}},
		{"an unmanaged service needs one that restarts", func(h *plannedHost) {
			h.observed.changeService("containerd", func(s *ServiceState) { s.CommandLine, s.Dependents = "other", []string{"kubelet", "Monitoring"} })
		}, []string{
			"stop service Monitoring: dependency, drain",
			"stop service kubelet: dependency, drain",
			"stop service containerd: restart, drain",
			"put service containerd: differs, drain",
			"start service containerd: restart, drain",
			"start service kubelet: dependency, drain",
			"start service Monitoring: dependency, drain",
		}},
		{"the description of a service differs", kubelet(func(s *ServiceState) { s.Description = "other" }), []string{"put service kubelet: differs, none"}},
		{"the start type of a service differs", kubelet(func(s *ServiceState) { s.Start = StartManual }), []string{"put service kubelet: differs, none"}},
		{"the dependencies of a service are in another case", kubelet(func(s *ServiceState) { s.Dependencies = []string{"ContainerD"} }), nil},
		{"the dependencies of a service differ", kubelet(func(s *ServiceState) { s.Dependencies = nil }), []string{"put service kubelet: differs, none"}},
		{"the recovery of a service differs", kubelet(func(s *ServiceState) { s.Recovery.ResetSeconds = 7 }), []string{"put service kubelet: differs, none"}},
		{"the pauses of the recovery of a service differ", kubelet(func(s *ServiceState) { s.Recovery.RestartAfterSeconds = []int{7} }), []string{
			"put service kubelet: differs, none",
		}},
		{"the recovery of a service is not known", kubelet(func(s *ServiceState) { s.Recovery = bundle.Recovery{ResetSeconds: -1} }), nil},
		{"a variable of a service is in another case", kubelet(func(s *ServiceState) { s.Environment = []string{"http_proxy=" + proxyValue} }), nil},
		{"a variable of a service differs", kubelet(func(s *ServiceState) { s.Environment = []string{proxyName + "=other"} }), []string{
			"stop service kubelet: restart, restart",
			"put service kubelet: differs, restart",
			"start service kubelet: restart, restart",
		}},
		{"a variable of a service is missing", kubelet(func(s *ServiceState) { s.Environment = nil }), []string{
			"stop service kubelet: restart, restart",
			"put service kubelet: differs, restart",
			"start service kubelet: restart, restart",
		}},
		{"a service has a variable too many", kubelet(func(s *ServiceState) { s.Environment = append(s.Environment, "A=b") }), []string{
			"stop service kubelet: restart, restart",
			"put service kubelet: differs, restart",
			"start service kubelet: restart, restart",
		}},
		{"a service has an empty variable too many", kubelet(func(s *ServiceState) { s.Environment = append(s.Environment, "A=") }), []string{
			"put service kubelet: differs, none",
		}},
		{"a variable of the host is hidden from a service", func(h *plannedHost) {
			h.c.Shadows = []string{"NO_PROXY", "http_proxy"}
			h.observed.changeService("containerd", func(s *ServiceState) { s.Environment = []string{"NO_PROXY=", "http_proxy="} })
		}, []string{"put service kubelet: differs, none"}},
		{"a service is being deleted", kubelet(func(s *ServiceState) { s.Status = ServiceDeleting }), []string{
			"stop service kubelet: restart, restart",
			"put service kubelet: differs, none",
			"start service kubelet: restart, restart",
		}},
		{"a service is starting, and what it reads is removed", func(h *plannedHost) {
			h.observed.changeService("kubelet", func(s *ServiceState) { s.Status = ServicePending })
			h.drop(func(b *bundle.Bundle) { b.Cluster.Files = b.Cluster.Files[1:] })
		}, []string{
			"stop service kubelet: restart, restart",
			`remove file C:\k\kubelet.conf: unwanted, restart`,
			"start service kubelet: restart, restart",
		}},
		{"an interrupted run did not start a service again", func(h *plannedHost) { h.c.Restart = []string{"kubelet"} }, []string{
			"stop service kubelet: restart, restart",
			"start service kubelet: restart, restart",
		}},
		{"a service that is started by hand only", func(h *plannedHost) {
			b := testBundle()
			b.Cluster.Services[1].Start = StartManual
			h.target = NewTarget(b, contents())
			h.observed.changeService("kubelet", func(s *ServiceState) { s.Start, s.Status = StartManual, ServiceStopped })
		}, nil},
		{"the service of the program itself is stopped, and differs", func(h *plannedHost) {
			h.c.Self = "Kubelet"
			h.observed.changeService("kubelet", func(s *ServiceState) { s.CommandLine, s.Status = "other", ServiceStopped })
		}, []string{"put service kubelet: differs, none"}},
		{"the service of the program itself does not exist", func(h *plannedHost) {
			h.c.Self = "Kubelet"
			delete(h.observed.Services, "kubelet")
		}, []string{"put service kubelet: absent, none", "start service kubelet: not running, none"}},
		{"a cycle of services", func(h *plannedHost) {
			b := testBundle()
			b.Cluster.Services[0].Dependencies = []string{"kubelet"}
			h.target = NewTarget(b, contents())
			clear(h.observed.Services)
		}, []string{
			"put service containerd: absent, none",
			"put service kubelet: absent, none",
			"start service kubelet: not running, none",
			"start service containerd: not running, none",
		}},
		{"all at once, in the order of the steps", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) {
				b.Cluster.Directories, b.Node.Files, b.Node.Endpoints = nil, nil, nil
			})
			h.put(confFile)
			h.remove(program)
			h.remove(tokenFile)
			h.setSetting("route 169.254.169.254/32", func(s *Setting) { s.Present = false })
			h.observed.changeService("containerd", func(s *ServiceState) { s.CommandLine = "other" })
			h.c.Stale = Stale{Networks: []string{"old"}}
		}, []string{
			"set route 169.254.169.254/32: absent, none",
			`write payload C:\k\kubelet.exe: absent, restart`,
			`write file C:\k\token: absent, none`,
			"stop service kubelet: restart, restart",
			"stop service containerd: restart, drain",
			"unset network old: stale, drain",
			"unset endpoint VIPEndpoint: unwanted, none",
			`write file C:\k\kubelet.conf: differs, restart`,
			"put service containerd: differs, drain",
			`remove file C:\k\cni\cni.conf: unwanted, none`,
			"start service containerd: restart, drain",
			"start service kubelet: restart, restart",
			`remove directory C:\k\cni: unwanted, none`,
		}},
	})
}
