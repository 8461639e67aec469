package selftest

import (
	"wmco/applier/plan"
	"wmco/bundle"
)

// The names that clauses use, and that nothing else may have on a machine that is tested.
const (
	// ServiceA, ServiceB and ServiceC are the services that clauses create.
	ServiceA = "wmco-selftest-a"
	ServiceB = "wmco-selftest-b"
	ServiceC = "wmco-selftest-c"
	// Root is the folder with everything that the self-test writes on a machine.
	Root = `C:\wmco-selftest`
	// RegistryKey is the key below HKEY_LOCAL_MACHINE in which the self-test keeps what it found before it changed it.
	RegistryKey = `SOFTWARE\wmco-selftest`
	// NetworkName is the HNS network, EndpointName the endpoint.
	NetworkName  = "WmcoSelftestNetwork"
	EndpointName = "WmcoSelftest"
	// CertificateName is what the common names of its trusted CAs begin with.
	CertificateName = "wmco selftest "
	// PipeName is the pipe that answers a probe.
	PipeName = `\\.\pipe\wmco-selftest`

	// HostName is what clauses name the computer.
	HostName = "wmco-selftest"

	firewallRule = "wmco selftest"
	// testRoute is of TEST-NET-1, which no network uses (RFC 5737).
	testRoute = "192.0.2.0/24"
	// program is the file of the service.
	program   = "service.exe"
	exclusion = "containerd.exe"
	variable1 = "WMCO_SELFTEST"
	variable2 = "WMCO_SELFTEST_A"
	variable3 = "WMCO_SELFTEST_B"
	// policy is a value that Windows does not know, in the key of automatic updates.
	policy = `WindowsUpdate\AU\WMCO_SELFTEST`
)

// KeyLine is the authorized key, KeyFingerprint its fingerprint. Its 32 bytes are a SHA-256, so that there is no
// private key for it.
const (
	KeyLine        = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBbpjehIpuCFIGQFyZHlW+d6LA1RvnXN/7Q4eXjdzxN2"
	KeyFingerprint = "SHA256:bCi+06JCfbR9cuEjPu5FG8xurMblmqzblvjEwq72NY4"
)

// Feature is the Windows feature that a clause asks for and withdraws.
const Feature = "Containers"

// services are the names of all services.
func services() []string { return []string{ServiceC, ServiceB, ServiceA} }

// settings are the settings that clauses make, by names that are known before. Trusted CAs have other names each time.
// What is given back as it was is in Before.
func settings(folder string) []plan.Setting {
	absent := func(kind bundle.EntryKind, name string) plan.Setting { return plan.Setting{Kind: kind, Name: name} }
	return []plan.Setting{
		absent(bundle.KindVariable, variable1), absent(bundle.KindVariable, variable2), absent(bundle.KindVariable, variable3),
		absent(bundle.KindRoute, testRoute), absent(bundle.KindFirewall, firewallRule), absent(bundle.KindExclusion, folder+`\`+exclusion),
		absent(bundle.KindAuthorizedKey, KeyFingerprint), absent(bundle.KindEndpoint, EndpointName),
		absent(bundle.KindPolicy, policy), absent(bundle.KindNetwork, NetworkName),
	}
}
