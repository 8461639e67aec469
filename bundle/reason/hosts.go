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
	MachineIdentityMissing    = "MachineIdentityMissing"
	MetadataUnreachable       = "MetadataUnreachable"
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
		{WindowsBuildUnsupported, isError, "The host does not run Windows Server 2019 (17763), 2022 (20348) or 2025 (26100).", "Install one of them."},
		{WindowsEditionUnsupported, isError, "The host runs a client edition of Windows, or Nano Server.", "Install Windows Server, Standard or Datacenter, Core or Desktop Experience."},
		{WindowsUpdateMissing, errorOrWarning, "Windows Server 2022 lacks KB5012637 (20348.681), which a custom VXLAN port, as on vSphere, needs. Warning if Windows Server 2025 lacks KB5087539 (26100.32860), the first supported update.", "Install the newest cumulative update."},
		{ComputerNameInvalid, isError, "The computer name is not a DNS label (RFC 1123), or has more than 15 characters, which Windows cuts.", "Rename the computer and reboot it."},
		{HostNameUnresolvable, isWarning, "The host's DNS does not resolve the host's own name.", "Add a record of the name, or check the host's DNS servers."},
		{HostNameOfAnotherAddress, isWarning, "The host's DNS resolves the host's name to addresses that the host does not have.", "Correct the record of the name."},
		{ReverseNameMissing, isInfo, "The host's address has no PTR record.", "None, unless the node waits for adoption: then add one with the name of the host."},
		{ReverseNameDiffers, isInfo, "The PTR record of the host's address has another name.", "Correct the record, or rename the computer."},
		{DefaultRouteMissing, isError, "The host has no IPv4 default route, which determines the kubelet's address.", "Give its network adapter a default gateway."},
		{DevicelessNICsEnabled, isWarning, "The host has a static address and runs Windows Server 2019 or 2025. When the first container network is created, it can lose the address and its connection.", "Before the host joins, set the DWORD `DeviceLessNicDisabled` of `HKLM\\SYSTEM\\CurrentControlSet\\Services\\hns\\State` to 1 and reboot."},
		{PortTaken, isError, "A program listens on a TCP port of the kubelet (10250, 10248), kube-proxy (10256, 10249) or windows_exporter (9182).", "Find it with `netstat -abno`, and remove it or change its port."},
		{PortExcluded, isError, "Windows (WinNAT) has reserved a TCP port of the kubelet, kube-proxy or windows_exporter. Reserved ranges may change with each boot.", "List them with `netsh int ipv4 show excludedportrange protocol=tcp`; reserve the port before the service winnat starts."},
		{ContainersFeatureMissing, isInfo, "The Windows feature Containers is off. It is turned on when the host joins, with a reboot.", "None, or turn it on earlier."},
		{BootPending, isWarning, "An installation waits for a reboot of the host.", "Reboot the host before it joins."},
		{ForeignContainerd, isError, "The host has a service containerd that does not belong to this project.", "Remove it with its containers and images: a node has one containerd."},
		{ForeignDocker, isWarning, "The host has Docker, which the node does not use.", "None; remove Docker if Pods have no network."},
		{ForeignKubelet, isWarning, "The host has a kubelet: it is or was a node of a cluster.", "Remove it from any other cluster before it joins."},
		{HostOfAnotherCluster, isError, "The kubelet of the host belongs to another cluster, or to another product whose cluster cannot be read. Nothing is changed on the host.", "Check the address, or remove the host from that cluster. If that no longer exists, delete the service: `ssh USER@HOST \"net stop kubelet /y & sc.exe delete kubelet\"`."},
		{DiskNearlyFull, errorOrWarning, "Drive C: has less space than executables and images need. Error below 5 GiB.", "Free space, or extend the drive."},
		{PageFileMissing, isWarning, "Windows has no page file, so it cannot commit memory for containers.", "Turn on a page file that Windows manages."},
		{ClockSkew, errorOrWarning, "The clocks of the host and the API server differ by more than ten seconds. Error from five minutes on: certificates and tokens are not valid then.", "Correct the host's time service: `w32tm /query /status`."},
		{APIServerUnresolvable, isError, "The host's DNS does not resolve the name of the API server.", "Add the name (api-int) to the DNS that the host uses."},
		{APIServerUnreachable, isError, "The host cannot connect to the API server.", "Open TCP port 6443 of the API server."},
		{APIServerCertificate, isError, "The API server's certificate, as the host sees it, is not signed by the cluster's CA.", "Check for an interception of TLS, and the host's clock."},
		{APIServerAnswer, isWarning, "The host connected to the URL of the API server, but the answer is not that of an API server.", "On the host, request the URL in the message (`curl.exe -k URL`), and find out which program answers: often a proxy or load balancer."},
		{RegistryUnresolvable, isWarning, "The host's DNS does not resolve the name of a registry of the pause image.", "Add the name to the DNS that the host uses."},
		{RegistryUnreachable, isWarning, "The host cannot connect to a registry of the pause image.", "Open the connection to the registry, or correct the mirror sets."},
		{RegistryCertificate, isWarning, "The host does not trust the certificate of a registry of the pause image.", "Add its CA to the trusted CAs of images or of the proxy."},
		{RegistryDenied, isWarning, "A registry of the pause image refuses the credentials of the pull secret, or requires some.", "Correct its entry in the pull secret."},
		{RegistryAnswer, isWarning, "The response of a registry of the pause image is not a manifest.", "Request the same URL on the host, and check what responds."},
		{PauseImageMissing, errorOrWarning, "A mirror or registry of the pause image does not have it. Error if none has it.", "Mirror the image, or set `pauseImage` in windows-machine-config."},
		{ProxyUnusable, errorOrWarning, "The cluster's proxy does not answer the host, or refuses a connection.", "Check the host's access to it, and whether noProxy should have the destination."},
		{MachineIdentityMissing, isInfo, "The virtual machine has no identity for the credential provider of its cloud: no role (AWS), no managed identity (Azure), or no service account that may read storage (Google Cloud).", "None if no Pod uses images of the cloud's registries. Otherwise give the machine the identity, or put credentials into the global pull secret."},
		{MetadataUnreachable, isWarning, "The host does not reach the instance metadata of its cloud, from which the credential provider gets its identity.", "Open `169.254.169.254` (Google Cloud: `metadata.google.internal`), without a proxy."},
		{FIPSEnabled, isInfo, "Windows is in FIPS mode, which is not tested: a node's programs use Go's own cryptography.", "Check whether your rules allow that."},
		{CodeIntegrityEnforced, isWarning, "A Windows Defender Application Control policy decides which programs run. The node agent and the executables are not signed.", "Allow the executables by digests (`wmco render`), or by folders that only administrators may change."},
		{AppLockerEnforced, isWarning, "An AppLocker policy decides which programs run. The node agent and the executables are not signed.", "Allow the folders C:\\k and C:\\Windows\\wmco for SYSTEM and Administrators."},
		{DefenderScansContainerd, isInfo, "Defender scans what containerd unpacks. The exclusion is set when the host joins.", "None, unless a policy forbids exclusions: pulls are slow then."},
		{FolderNotTrusted, isError, "Others than administrators own or may change a folder of the node agent.", "Remove it, or give it to Administrators, with access for SYSTEM and Administrators alone."},
		{LocaleUntested, isInfo, "The locale of Windows is not en-US, the only tested one.", "None; please report differences."},
		{PreflightIncomplete, isWarning, "Some facts of the host could not be read, so some checks were skipped.", "Log in as a member of Administrators (`--host USER@ADDR`), or run `wmco-node.exe preflight` on the host as administrator."},
	}
}
