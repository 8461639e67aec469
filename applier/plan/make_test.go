package plan

import (
	"testing"

	"wmco/bundle"
)

func TestPlansOfFiles(t *testing.T) {
	runPlanCases(t, []planCase{
		{"everything is as it should be", func(*plannedHost) {}, nil},
		{"nothing is managed yet", func(h *plannedHost) { h.c.Owned = nil }, []string{
			"adopt: route 169.254.169.254/32",
			"adopt: feature Containers",
			"adopt: endpoint VIPEndpoint",
			`adopt: directory C:\k`,
			`adopt: directory C:\k\cni`,
			`adopt: directory C:\ProgramData\containerd`,
			`adopt: file C:\k\cni\cni.conf`,
			`adopt: file C:\k\kubelet.conf`,
			`adopt: payload C:\k\kubelet.exe`,
			`adopt: file C:\k\token`,
			"adopt: service containerd",
			"adopt: service kubelet",
		}},
		{"a file that a running service reads differs", func(h *plannedHost) { h.put(confFile) }, []string{
			"stop service kubelet: restart, restart",
			`write file C:\k\kubelet.conf: differs, restart`,
			"start service kubelet: restart, restart",
		}},
		{"a file is missing", func(h *plannedHost) { h.remove(confFile) }, []string{
			`write file C:\k\kubelet.conf: absent, restart`,
			"stop service kubelet: restart, restart",
			"start service kubelet: restart, restart",
		}},
		{"a file that a stopped service reads differs", func(h *plannedHost) {
			h.put(confFile)
			h.observed.changeService("kubelet", func(s *ServiceState) { s.Status = ServiceStopped })
		}, []string{`write file C:\k\kubelet.conf: differs, none`, "start service kubelet: not running, none"}},
		{"the access of a file differs", func(h *plannedHost) { h.setAccess(confFile, AccessOther) }, []string{`write file C:\k\kubelet.conf: access, none`}},
		{"the access of a file is not known", func(h *plannedHost) { h.setAccess(confFile, "") }, nil},
		{"a secret that is not here yet", func(h *plannedHost) { h.target = NewTarget(testBundle(), nil) }, []string{
			`write file C:\k\token: differs, none`,
			"missing: " + string(tokenDigest),
		}},
		{"a link is in the place of a file", func(h *plannedHost) { putFile(h.observed, FileInfo{Path: confFile, Kind: FileOther}, "") }, []string{
			`remove file C:\k\kubelet.conf: in the way, none`,
			"stop service kubelet: restart, restart",
			`write file C:\k\kubelet.conf: in the way, restart`,
			"start service kubelet: restart, restart",
		}},
		{"a folder with a file is in the place of a file", func(h *plannedHost) {
			h.putFolder(tokenFile, bundle.AccessUsers)
			h.put(tokenFile + `\a`)
		}, []string{
			`remove file C:\k\token\a: in the way, none`,
			`remove directory C:\k\token: in the way, none`,
			`write file C:\k\token: in the way, none`,
		}},
		{"a file is in the place of a folder", func(h *plannedHost) {
			h.remove(cniFile)
			h.put(cniFolder)
		}, []string{
			`remove file C:\k\cni: in the way, none`,
			`make directory C:\k\cni: in the way, none`,
			`write file C:\k\cni\cni.conf: absent, none`,
		}},
		{"folders are missing", func(h *plannedHost) {
			h.remove(cniFile)
			h.remove(cniFolder)
		}, []string{`make directory C:\k\cni: absent, none`, `write file C:\k\cni\cni.conf: absent, none`}},
		{"the access of folders differs", func(h *plannedHost) {
			h.putFolder(cniFolder, bundle.AccessUsers)
			h.putFolder(`C:\k`, bundle.AccessAdmins)
		}, []string{`make directory C:\k: access, none`, `make directory C:\k\cni: access, none`}},
		{"an entry that is skipped", func(h *plannedHost) {
			h.put(confFile)
			h.putFolder(cniFolder, bundle.AccessUsers)
			h.c.Skip = map[bundle.EntryID]bool{bundle.KindFile.ID(confFile): true, bundle.KindDirectory.ID(cniFolder): true}
		}, []string{`skipped: directory C:\k\cni`, `skipped: file C:\k\kubelet.conf`}},
		{"only one entry may change", func(h *plannedHost) {
			h.put(confFile)
			h.put(tokenFile)
			h.c.Only = map[bundle.EntryID]bool{bundle.KindFile.ID(tokenFile): true}
		}, []string{`write file C:\k\token: differs, none`, `skipped: file C:\k\kubelet.conf`}},
		{"unknown files", func(h *plannedHost) {
			h.put(cniFolder + `\unknown`)
			h.put(`C:\k\foreign`)
			h.put(confFile + bundle.NewMark)
			h.put(`C:\k\pki\a.pem`)
			h.put(`C:\k\a.pem`)
			h.put(`C:\k\pki\b.txt`)
			h.put(logFolder + `\kubelet.log`)
			h.put(`C:\var\lib\kubelet\state`)
			h.putFolder(`C:\var\log`, bundle.AccessUsers)
			h.putFolder(logFolder, bundle.AccessUsers)
			h.putFolder(`C:\var\lib\kubelet`, bundle.AccessUsers)
		}, []string{
			`remove file C:\k\cni\unknown: unknown, none`,
			`foreign: C:\k\foreign`,
			`foreign: C:\k\a.pem`,
			`foreign: C:\k\pki\b.txt`,
			`leftover: C:\k\kubelet.conf.wmco-new`,
		}},
		{"a managed file in an exclusive folder that the target does not name", func(h *plannedHost) {
			h.put(cniFolder + `\old`)
			h.c.Owned[fileName(cniFolder+`\old`)] = true
		}, []string{`remove file C:\k\cni\old: unwanted, none`}},
		{"a folder below an exclusive one, and an unknown file that is skipped", func(h *plannedHost) {
			h.putFolder(cniFolder+`\deep`, bundle.AccessUsers)
			h.put(cniFolder + `\deep\a`)
			h.put(cniFolder + `\b`)
			h.c.Skip = map[bundle.EntryID]bool{bundle.KindFile.ID(cniFolder + `\b`): true}
		}, []string{
			`remove file C:\k\cni\deep\a: unknown, none`,
			`remove directory C:\k\cni\deep: unknown, none`,
			`skipped: file C:\k\cni\b`,
		}},
	})
}

func TestPlansOfRemovals(t *testing.T) {
	runPlanCases(t, []planCase{
		{"a file is no longer wanted", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Files = b.Cluster.Files[:1] })
		}, []string{`remove file C:\k\token: unwanted, none`}},
		{"a file that a service read is no longer wanted", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Files = b.Cluster.Files[1:] })
		}, []string{
			"stop service kubelet: restart, restart",
			`remove file C:\k\kubelet.conf: unwanted, restart`,
			"start service kubelet: restart, restart",
		}},
		{"a file that is no longer wanted is gone", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Files = b.Cluster.Files[:1] })
			h.remove(tokenFile)
		}, nil},
		{"a file that is no longer wanted is skipped", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Files = b.Cluster.Files[:1] })
			h.c.Skip = map[bundle.EntryID]bool{bundle.KindFile.ID(tokenFile): true}
		}, []string{`skipped: file C:\k\token`}},
		{"a folder with its file is no longer wanted", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Directories, b.Node.Files = nil, nil })
			h.put(cniFile + bundle.NewMark)
		}, []string{
			`remove file C:\k\cni\cni.conf: unwanted, none`,
			`remove directory C:\k\cni: unwanted, none`,
			`leftover: C:\k\cni\cni.conf.wmco-new`,
		}},
		{"a folder is no longer wanted, and holds a file of somebody else", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Directories, b.Node.Files = nil, nil })
			h.put(cniFolder + `\foreign`)
		}, []string{`remove file C:\k\cni\cni.conf: unwanted, none`, `foreign: C:\k\cni\foreign`}},
		{"a service is no longer wanted", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Services = b.Cluster.Services[:1] })
		}, []string{"stop service kubelet: unwanted, restart", "delete service kubelet: unwanted, restart"}},
		{"a service that others need is no longer wanted", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) {
				b.Cluster.Services = b.Cluster.Services[1:]
				b.Cluster.Services[0].Dependencies = nil
			})
		}, []string{
			"stop service kubelet: dependency, drain",
			"stop service containerd: unwanted, drain",
			"delete service containerd: unwanted, drain",
			"put service kubelet: differs, none",
			"start service kubelet: dependency, drain",
			`remove directory C:\ProgramData\containerd: unwanted, none`,
		}},
		{"a service that is no longer wanted does not exist", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Services = b.Cluster.Services[:1] })
			delete(h.observed.Services, "kubelet")
		}, nil},
		{"a service that is no longer wanted runs a program elsewhere", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Services = b.Cluster.Services[:1] })
			h.observed.changeService("kubelet", func(s *ServiceState) { s.CommandLine = `C:\elsewhere\kubelet.exe` })
		}, nil},
		{"a service that is no longer wanted is skipped", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Services = b.Cluster.Services[:1] })
			h.c.Skip = map[bundle.EntryID]bool{"service kubelet": true}
		}, []string{"skipped: service kubelet"}},
		{"a setting is no longer wanted", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Routes, b.Node.Endpoints = nil, nil })
		}, []string{"unset route 169.254.169.254/32: unwanted, none", "unset endpoint VIPEndpoint: unwanted, none"}},
		{"a setting that is no longer wanted is gone", func(h *plannedHost) {
			h.drop(func(b *bundle.Bundle) { b.Cluster.Routes = nil })
			h.setSetting("route 169.254.169.254/32", func(s *Setting) { s.Present = false })
		}, nil},
		{"what belongs to another cluster", func(h *plannedHost) {
			h.c.Stale = Stale{Paths: []string{`C:\k\pki`}, Networks: []string{"old"}}
		}, []string{
			"stop service kubelet: restart, restart",
			"stop service containerd: restart, restart",
			`clear state C:\k\pki: stale, none`,
			"unset network old: stale, drain",
			"start service containerd: restart, restart",
			"start service kubelet: restart, restart",
		}},
	})
}

func TestPlansOfSettings(t *testing.T) {
	const route, feature, endpoint = bundle.EntryID("route 169.254.169.254/32"), bundle.EntryID("feature Containers"), bundle.EntryID("endpoint VIPEndpoint")
	absent := func(s *Setting) { s.Present = false }
	runPlanCases(t, []planCase{
		{"a setting is absent", func(h *plannedHost) { h.setSetting(route, absent) }, []string{"set route 169.254.169.254/32: absent, none"}},
		{"a setting differs", func(h *plannedHost) { h.setSetting(route, func(s *Setting) { s.Value = "10.0.0.2" }) }, []string{
			"set route 169.254.169.254/32: differs, none",
		}},
		{"a setting is skipped", func(h *plannedHost) {
			h.setSetting(route, absent)
			h.c.Skip = map[bundle.EntryID]bool{route: true}
		}, []string{"skipped: route 169.254.169.254/32"}},
		{"a host has no such settings", func(h *plannedHost) {
			h.setSetting(route, func(s *Setting) { s.Present, s.Unavailable = false, true })
		}, nil},
		{"a feature is absent: services wait for the boot", func(h *plannedHost) {
			h.setSetting(feature, absent)
			h.observed.changeService("kubelet", func(s *ServiceState) { s.Status = ServiceStopped })
		}, []string{"set feature Containers: absent, reboot", "a boot is needed"}},
		{"a feature waits for a boot", func(h *plannedHost) { h.setSetting(feature, func(s *Setting) { s.Pending = true }) }, []string{
			"pending: feature Containers",
			"a boot is needed",
		}},
		{"an endpoint is absent", func(h *plannedHost) { h.setSetting(endpoint, absent) }, []string{"set endpoint VIPEndpoint: absent, none"}},
		{"an endpoint is absent, and its network too", func(h *plannedHost) {
			h.setSetting(endpoint, absent)
			h.c.Networks = nil
		}, []string{"waiting: endpoint VIPEndpoint"}},
		{"a secret variable is not here yet", func(h *plannedHost) {
			b := testBundle()
			b.Cluster.Variables = []bundle.Variable{{Name: "SECRET", Digest: secretDigest, Impact: bundle.ImpactNone}}
			h.target = NewTarget(b, contents())
		}, []string{"set variable SECRET: absent, none", "missing: " + string(secretDigest)}},
	})
}
