package preflight

import (
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/layout"
)

// check is one rule.
type check func(Question, Answer) bundle.Findings

// Findings returns what a host lacks before it can become a node, the most severe first. A healthy host has none.
func Findings(q Question, a Answer) bundle.Findings {
	var all bundle.Findings
	for _, c := range []check{
		checkWindows, checkUpdate, checkComputerName, checkNames, checkRoute, checkStaticAddress, checkPorts, checkFeatures, checkForeign, checkDisk,
		checkClock, checkAPI, checkRegistries, checkIdentity, checkPolicies, checkDefender, checkFolders, checkUnread,
	} {
		all = append(all, c(q, a)...)
	}
	for i := range all {
		all[i].Node = q.Address
	}
	return all.Sorted()
}

// finding returns one finding as a list. Values of the host are quoted by the caller.
func finding(s bundle.Severity, why, message, fix string) bundle.Findings {
	return bundle.Findings{{Severity: s, Reason: why, Message: message, Fix: fix}}
}

func refuse(why, message, fix string) bundle.Findings {
	return finding(bundle.SeverityError, why, message, fix)
}

func warn(why, message, fix string) bundle.Findings {
	return finding(bundle.SeverityWarning, why, message, fix)
}

func info(why, message, fix string) bundle.Findings {
	return finding(bundle.SeverityInfo, why, message, fix)
}

// The builds of Windows Server that are supported: 2019, 2022, 2025
// (learn.microsoft.com/windows/release-health/windows-server-release-info).
const (
	build2019 = 17763
	build2022 = 20348
	build2025 = 26100
	// updateVXLAN is KB5012637, with which Windows Server 2022 has a custom VXLAN port
	// (support.microsoft.com/topic/april-25-2022-kb5012637-os-build-20348-681-preview).
	updateVXLAN = 681
	portVXLAN   = 4789
	// update2025 is KB5087539, the first update of Windows Server 2025 that the existing operator supports (its release
	// notes of 10.22.0).
	update2025 = 32860
)

func checkWindows(_ Question, a Answer) bundle.Findings {
	var all bundle.Findings
	if !slices.Contains([]int{build2019, build2022, build2025}, a.Facts.Build()) {
		all = append(all, refuse(reason.WindowsBuildUnsupported, fmt.Sprintf("Windows %q is not supported", a.Facts.OSBuild),
			"install Windows Server 2022 (10.0.20348) or 2025 (10.0.26100)")...)
	}
	if kind := a.Machine.Installation; kind != "" && kind != "Server" && kind != "Server Core" {
		all = append(all, refuse(reason.WindowsEditionUnsupported, fmt.Sprintf("this is %q (%q)", kind, a.Machine.Edition),
			"install Windows Server, Standard or Datacenter")...)
	}
	return all
}

// computerName is a DNS label (RFC 1123) of at most 15 characters, the length of a NetBIOS name.
var computerName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,13}[A-Za-z0-9])?$`)

func checkComputerName(q Question, a Answer) bundle.Findings {
	if q.RenamesComputer || computerName.MatchString(a.Facts.HostName) {
		return nil
	}
	return refuse(reason.ComputerNameInvalid, fmt.Sprintf(
		"the computer's name %q is no DNS label of at most 15 characters", a.Facts.HostName,
	),
		"rename the computer and boot it")
}

func checkNames(q Question, a Answer) bundle.Findings {
	if q.RenamesComputer || a.Names.Full == "" {
		return nil
	}
	var all bundle.Findings
	own := func(address string) bool { return a.Facts.HasAddress(address) }
	switch {
	case len(a.Names.Addresses) == 0:
		all = append(all, warn(
			reason.HostNameUnresolvable, fmt.Sprintf("DNS does not know the host's name %q", a.Names.Full),
			"add a record of the name",
		)...)
	case !slices.ContainsFunc(a.Names.Addresses, own):
		all = append(all, warn(
			reason.HostNameOfAnotherAddress,
			fmt.Sprintf("DNS has other addresses for the host's name %q: %q", a.Names.Full, first(a.Names.Addresses)),
			"correct the record of the name",
		)...)
	}
	label, _, _ := strings.Cut(a.Facts.HostName, ".")
	same := func(pointer string) bool {
		name, _, _ := strings.Cut(pointer, ".")
		return strings.EqualFold(name, label)
	}
	switch {
	case len(a.Names.Pointers) == 0:
		all = append(all, info(
			reason.ReverseNameMissing, "the host's address has no name in DNS",
			"add a PTR record of the address with the name of the host",
		)...)
	case !slices.ContainsFunc(a.Names.Pointers, same):
		all = append(all, info(
			reason.ReverseNameDiffers,
			fmt.Sprintf("the host's address has other names in DNS: %q, not %q", first(a.Names.Pointers), label),
			"correct the PTR record, or rename the computer",
		)...)
	}
	return all
}

// shown is how many values of a list a message has.
const shown = 3

func first(list []string) []string { return list[:min(shown, len(list))] }

func checkRoute(_ Question, a Answer) bundle.Findings {
	if _, err := netip.ParseAddr(a.Facts.DefaultRoute.Address); err == nil {
		return nil
	}
	return refuse(reason.DefaultRouteMissing, "the host has no IPv4 default route", "give the network adapter a default gateway")
}

func checkPorts(_ Question, a Answer) bundle.Findings {
	var all bundle.Findings
	for _, port := range layout.Ports() {
		switch state := a.Machine.portState(port.Number); {
		case state == PortTaken && !a.Machine.runsOwnService(port.Service):
			all = append(all, refuse(reason.PortTaken, fmt.Sprintf(
				"a program listens on TCP port %d, which the service %s needs", port.Number, port.Service,
			),
				"find it with `netstat -abno`, and remove it")...)
		case state == PortExcluded:
			all = append(all, refuse(reason.PortExcluded, fmt.Sprintf(
				"Windows keeps TCP port %d for itself, which the service %s needs", port.Number, port.Service,
			),
				"list the ranges with `netsh int ipv4 show excludedportrange protocol=tcp`, and reserve the port "+
					"before the service winnat starts")...)
		}
	}
	return all
}

// Ports returns the TCP ports that services of a node listen on.
func Ports() []layout.Port { return layout.Ports() }

// portState returns the state of a port, free if the host does not say.
func (m Machine) portState(number int) PortState {
	for _, p := range m.Ports {
		if p.Number == number {
			return p.State
		}
	}
	return PortFree
}

// Services returns those whose state is part of an answer: those that are not to be there before the host joins, and
// all that have a port.
func Services() []string {
	all := []string{layout.Containerd, docker}
	for _, port := range layout.Ports() {
		if !slices.Contains(all, port.Service) {
			all = append(all, port.Service)
		}
	}
	slices.Sort(all)
	return all
}

const docker = "docker"

// runsOwnService reports whether a service of this project, or of the existing operator, runs: it may have its port.
func (m Machine) runsOwnService(name string) bool {
	return slices.ContainsFunc(m.Services, func(s Service) bool { return s.Name == name && s.Running && s.isOwn() })
}

func (s Service) isOwn() bool {
	return strings.HasPrefix(strings.ToLower(strings.Trim(s.Program, `"`)), ownPrograms)
}

// containers is the Windows feature that containerd needs.
const containers = "Containers"

func checkFeatures(_ Question, a Answer) bundle.Findings {
	var all bundle.Findings
	if !slices.Contains(a.Facts.Features, containers) && !a.Facts.IsUnknown(bundle.PartFeatures) {
		all = append(all, info(
			reason.ContainersFeatureMissing,
			"the Windows feature Containers is off: it is turned on when the host joins, which takes a boot",
			"none, or turn it on earlier",
		)...)
	}
	var boots []string
	for _, r := range bundle.BootReasons() {
		if slices.Contains(a.Facts.PendingBoots, r) {
			boots = append(boots, r.Describe())
		}
	}
	if len(boots) > 0 {
		all = append(all, warn(
			reason.BootPending, "Windows needs a reboot: "+strings.Join(boots, ", "),
			"boot the host before it joins",
		)...)
	}
	return all
}

// ownPrograms begins the paths of this project's programs.
const ownPrograms = `c:\k\`

func checkForeign(q Question, a Answer) bundle.Findings {
	var all bundle.Findings
	for _, s := range a.Machine.Services {
		switch strings.ToLower(s.Name) {
		case layout.Containerd:
			if !s.isOwn() {
				all = append(all, refuse(
					reason.ForeignContainerd, fmt.Sprintf("the host has another containerd, %q", s.Program),
					"remove it with its containers and images",
				)...)
			}
		case docker:
			all = append(all, warn(
				reason.ForeignDocker, "the host has Docker, which the node does not use",
				"none; remove it if Pods have no network",
			)...)
		case layout.Kubelet:
			if why, fix := a.Facts.Kubelet.BelongsElsewhere(q.API, q.CA); why != "" {
				all = append(all, refuse(reason.HostOfAnotherCluster, why, fix)...)
			} else if !q.Node {
				all = append(all, warn(
					reason.ForeignKubelet, fmt.Sprintf("the host has a kubelet already, %q", s.Program),
					"remove it from its cluster first",
				)...)
			}
		}
	}
	return all
}

// Room on drive C:, in bytes: executables and their second copy take 1 GiB, the image of a Windows base layer 5 GiB
// unpacked.
const (
	leastFree  = 5 << 30
	usefulFree = 20 << 30
)

func checkDisk(_ Question, a Answer) bundle.Findings {
	var all bundle.Findings
	if free := a.Machine.FreeBytes; free < usefulFree {
		severity := bundle.SeverityWarning
		if free < leastFree {
			severity = bundle.SeverityError
		}
		all = append(all, finding(
			severity, reason.DiskNearlyFull, fmt.Sprintf("%d GiB are free on drive C:", max(0, free)>>30),
			"make room, or extend the drive to have 20 GiB free",
		)...)
	}
	if !a.Machine.PageFile {
		all = append(all, warn(reason.PageFileMissing, "Windows has no page file", "turn on a page file that Windows manages")...)
	}
	return all
}

// Differences of clocks, in seconds: kube-apiserver checks the times of a token or certificate to the second, and gives
// certificates five minutes of the past (k8s.io/kubernetes/pkg/controller/certificates/signer, backdate).
const (
	skewWarned = 10
	skewFailed = 300
)

func checkClock(_ Question, a Answer) bundle.Findings {
	if a.ClockSkewSeconds == nil || math.Abs(*a.ClockSkewSeconds) <= skewWarned {
		return nil
	}
	severity, way := bundle.SeverityWarning, "ahead of"
	if math.Abs(*a.ClockSkewSeconds) >= skewFailed {
		severity = bundle.SeverityError
	}
	if *a.ClockSkewSeconds < 0 {
		way = "behind"
	}
	// In steps of ten seconds, so that the text stays the same from one question to the next.
	return finding(severity, reason.ClockSkew, fmt.Sprintf(
		"the host's clock is %.0f s %s the API server's", math.Floor(math.Abs(*a.ClockSkewSeconds)/10)*10, way,
	),
		"correct the time service of the host: `w32tm /query /status`")
}

func checkPolicies(_ Question, a Answer) bundle.Findings {
	var all bundle.Findings
	if a.Machine.FIPS {
		all = append(all, info(
			reason.FIPSEnabled, "Windows is in FIPS mode",
			"check whether your rules allow programs with their own cryptography",
		)...)
	}
	if a.Machine.CodeIntegrity {
		all = append(all, warn(
			reason.CodeIntegrityEnforced,
			"a policy of Windows Defender Application Control decides which programs run",
			"allow the executables by their digests, or by C:\\k and C:\\Windows\\wmco",
		)...)
	}
	if a.Machine.AppLocker {
		all = append(all, warn(
			reason.AppLockerEnforced, "a policy of AppLocker decides which programs run",
			"allow C:\\k and C:\\Windows\\wmco for SYSTEM and Administrators",
		)...)
	}
	if l := a.Machine.Locale; l != "" && l != "en-US" {
		all = append(all, info(
			reason.LocaleUntested, fmt.Sprintf("the locale of Windows is %q; en-US is tested", l),
			"none; please report differences",
		)...)
	}
	return all
}

func checkDefender(_ Question, a Answer) bundle.Findings {
	if !a.Facts.DefenderRunning || a.Machine.Excluded {
		return nil
	}
	return info(
		reason.DefenderScansContainerd,
		"Defender scans what containerd unpacks, until the exclusion is set when the host joins",
		"none, unless a policy forbids exclusions",
	)
}

func checkFolders(_ Question, a Answer) bundle.Findings {
	var all bundle.Findings
	for _, f := range a.Machine.Folders {
		// A host is asked for two folders.
		if !f.Trusted && len(all) < shown {
			all = append(all, refuse(
				reason.FolderNotTrusted, fmt.Sprintf("others than administrators own or change %q", f.Path),
				"remove it, or give it to Administrators with access for SYSTEM and Administrators alone",
			)...)
		}
	}
	return all
}

func checkUnread(_ Question, a Answer) bundle.Findings {
	if len(a.Unread) == 0 {
		return nil
	}
	return warn(
		reason.PreflightIncomplete, fmt.Sprintf("facts could not be read: %q", first(a.Unread)),
		"run the command as an administrator",
	)
}
