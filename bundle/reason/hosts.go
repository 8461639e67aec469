package reason

// Reasons of findings of `wmco preflight`: what a host lacks before it can become a node.
const (
	WindowsBuildUnsupported   = "WindowsBuildUnsupported"
	WindowsEditionUnsupported = "WindowsEditionUnsupported"
	WindowsUpdateMissing      = "WindowsUpdateMissing"
	ComputerNameInvalid       = "ComputerNameInvalid"
	HostNameUnresolvable      = "HostNameUnresolvable"
	HostNameOfAnotherAddress  = "HostNameOfAnotherAddress"
	ReverseNameMissing        = "ReverseNameMissing"
	ReverseNameDiffers        = "ReverseNameDiffers"
	DefaultRouteMissing       = "DefaultRouteMissing"
	DevicelessNICsEnabled     = "DevicelessNICsEnabled"
	PortTaken                 = "PortTaken"
	PortExcluded              = "PortExcluded"
	ContainersFeatureMissing  = "ContainersFeatureMissing"
	BootPending               = "BootPending"
	ForeignContainerd         = "ForeignContainerd"
	ForeignDocker             = "ForeignDocker"
	ForeignKubelet            = "ForeignKubelet"
	HostOfAnotherCluster      = "HostOfAnotherCluster"
	DiskNearlyFull            = "DiskNearlyFull"
	PageFileMissing           = "PageFileMissing"
	ClockSkew                 = "ClockSkew"
	APIServerUnresolvable     = "APIServerUnresolvable"
	APIServerUnreachable      = "APIServerUnreachable"
	APIServerCertificate      = "APIServerCertificate"
	APIServerAnswer           = "APIServerAnswer"
	RegistryUnresolvable      = "RegistryUnresolvable"
	RegistryUnreachable       = "RegistryUnreachable"
	RegistryCertificate       = "RegistryCertificate"
	RegistryDenied            = "RegistryDenied"
	RegistryAnswer            = "RegistryAnswer"
	PauseImageMissing         = "PauseImageMissing"
	ProxyUnusable             = "ProxyUnusable"
	FIPSEnabled               = "FIPSEnabled"
	CodeIntegrityEnforced     = "CodeIntegrityEnforced"
	AppLockerEnforced         = "AppLockerEnforced"
	DefenderScansContainerd   = "DefenderScansContainerd"
	FolderNotTrusted          = "FolderNotTrusted"
	LocaleUntested            = "LocaleUntested"
	PreflightIncomplete       = "PreflightIncomplete"
)

func hostReasons() []Entry {
	return []Entry{
		{WindowsBuildUnsupported, isError, "The host's Windows is none of Windows Server 2019 (17763), 2022 (20348) and 2025 (26100).", "Install one of them."},
		{WindowsEditionUnsupported, isError, "The host has no Windows Server with or without a desktop, but Windows for clients or a Nano Server.", "Install Windows Server, Standard or Datacenter."},
		{WindowsUpdateMissing, errorOrWarning, "Windows Server 2022 lacks the update KB5012637 (20348.681), without which a custom VXLAN port does not work. vSphere needs one. For Windows Server 2025 it is a warning: it lacks KB5087539 (26100.32860), the first update that is supported.", "Install the newest cumulative update of Windows."},
		{ComputerNameInvalid, isError, "The name of the computer is no DNS label (RFC 1123), or has more than 15 characters, which Windows cuts.", "Rename the computer and boot it."},
		{HostNameUnresolvable, isWarning, "The DNS of the host does not know the host's own name.", "Add a record of the name, or check the DNS servers of the host."},
		{HostNameOfAnotherAddress, isWarning, "The DNS of the host has other addresses for the host's name than the host has.", "Correct the record of the name."},
		{ReverseNameMissing, isInfo, "The address of the host has no name in DNS. Only serving certificates of nodes that wait for adoption are approved by it.", "Nothing, or add a PTR record of the address with the name of the host."},
		{ReverseNameDiffers, isInfo, "The address of the host has another name in DNS than the host.", "Correct the PTR record of the address, or rename the computer."},
		{DefaultRouteMissing, isError, "The host has no IPv4 default route, by which the kubelet's address is chosen.", "Give the host's network adapter a default gateway."},
		{DevicelessNICsEnabled, isWarning, "The host has a static address and is not Windows Server 2022: the first container network may take the address off the host, which is not reachable then.", "Before the host joins, set the DWORD `DeviceLessNicDisabled` of `HKLM\\SYSTEM\\CurrentControlSet\\Services\\hns\\State` to 1 and boot the host."},
		{PortTaken, isError, "A program of the host listens on a TCP port that a service of the node needs: of the kubelet (10250, 10248), kube-proxy (10256, 10249) or windows_exporter (9182).", "Find it with `netstat -abno`, and remove it or give it another port."},
		{PortExcluded, isError, "Windows keeps a TCP port for itself that a service of the node needs: of the kubelet (10250, 10248), kube-proxy (10256, 10249) or windows_exporter (9182). WinNAT excludes ranges of ports that may change with each boot.", "List the ranges with `netsh int ipv4 show excludedportrange protocol=tcp`; reserve the port before the service winnat starts."},
		{ContainersFeatureMissing, isInfo, "The Windows feature Containers is off. It is turned on when the host joins, which takes a boot.", "Nothing, or turn it on before to save the boot."},
		{BootPending, isWarning, "Something that was installed waits for a boot of the host.", "Boot the host before it joins."},
		{ForeignContainerd, isError, "The host has a service containerd that is not of this project.", "Remove it with its containers and images: a node has one containerd."},
		{ForeignDocker, isWarning, "The host has Docker. The node does not use it, and may run beside it.", "Nothing; or remove Docker, if Pods have no network."},
		{ForeignKubelet, isWarning, "The host has a kubelet already: it is a node of a cluster, or was one.", "Remove it from that cluster before it joins another one. Nothing if it is a node of this cluster."},
		{HostOfAnotherCluster, isError, "The kubelet of the host belongs to another cluster by its kubeconfig, or it is another product's and its cluster cannot be read. Nothing is changed on the host.", "Check the address, or remove the host from that cluster first. If the cluster no longer exists, delete the service on the host: `ssh USER@HOST \"net stop kubelet /y & sc.exe delete kubelet\"`."},
		{DiskNearlyFull, errorOrWarning, "Drive C: has less room than executables and images need. It is an error below 5 GiB.", "Make room, or extend the drive."},
		{PageFileMissing, isWarning, "Windows has no page file. Windows commits memory of containers before they use it, and refuses it without one.", "Turn on a page file that Windows manages."},
		{ClockSkew, errorOrWarning, "The clock of the host differs from the API server's by more than ten seconds. It is an error from five minutes on: certificates and tokens are not valid yet, or any longer.", "Correct the host's time service: `w32tm /query /status`."},
		{APIServerUnresolvable, isError, "The host's DNS does not know the name of the API server.", "Add the name (api-int) to the DNS that the host asks."},
		{APIServerUnreachable, isError, "The host cannot connect to the API server.", "Open the way to TCP port 6443 of the API server."},
		{APIServerCertificate, isError, "The certificate of the API server that the host sees is not of the cluster's CA.", "Check whether something on the way intercepts TLS, and the clock of the host."},
		{APIServerAnswer, isWarning, "The API server answers the host with something else than a version.", "Ask the same URL on the host, and look at what answers there."},
		{RegistryUnresolvable, isWarning, "The host's DNS does not know the name of a place from which the pause image may be pulled.", "Add the name to the DNS that the host asks."},
		{RegistryUnreachable, isWarning, "The host cannot connect to a place from which the pause image may be pulled.", "Open the way to the registry, or correct the mirror sets."},
		{RegistryCertificate, isWarning, "The host does not trust the certificate of a place from which the pause image may be pulled.", "Add its CA to the trusted CAs of the cluster's images or proxy."},
		{RegistryDenied, isWarning, "A place from which the pause image may be pulled refuses the credentials of the pull secret, or asks for some.", "Correct the entry of the registry in the pull secret."},
		{RegistryAnswer, isWarning, "A place from which the pause image may be pulled answers the host with something else than a manifest.", "Ask the same URL on the host, and look at what answers there."},
		{PauseImageMissing, errorOrWarning, "A place from which the pause image may be pulled does not have it. It is an error if no place has.", "Mirror the image, or set `pauseImage` in the configuration of the operator."},
		{ProxyUnusable, errorOrWarning, "The cluster's proxy does not answer the host, or refuses a connection.", "Check that the host may use the proxy, and whether noProxy should have the destination."},
		{FIPSEnabled, isInfo, "Windows is in FIPS mode, which is outside of what this project is tested with: the programs of a node are built with Go's own cryptography.", "Check whether your rules allow that."},
		{CodeIntegrityEnforced, isWarning, "A policy of Windows Defender Application Control decides which programs run. The node agent and the executables are not signed.", "Allow the executables by their digests (`wmco render`), or by the folders that only administrators may change."},
		{AppLockerEnforced, isWarning, "A policy of AppLocker decides which programs run. The node agent and the executables are not signed.", "Allow the folders C:\\k and C:\\Windows\\wmco for SYSTEM and Administrators."},
		{DefenderScansContainerd, isInfo, "Defender scans what containerd unpacks. The exclusion is set when the host joins.", "Nothing, unless a policy forbids exclusions: pulls are slow then."},
		{FolderNotTrusted, isError, "A folder in which the node agent keeps its records or its program is owned or may be changed by others than administrators.", "Remove the folder, or give it to Administrators with access for SYSTEM and Administrators alone."},
		{LocaleUntested, isInfo, "The locale of Windows is not en-US, which alone is tested.", "Nothing; report what differs."},
		{PreflightIncomplete, isWarning, "Some facts of the host could not be read, so what depends on them was not checked.", "Run the command again as an administrator; the message has the reasons."},
	}
}
