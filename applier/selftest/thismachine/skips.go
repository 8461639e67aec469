package thismachine

// skipsEverywhere returns the clauses that are not tested on any Windows, and why.
func skipsEverywhere() map[string]string {
	const (
		boot = "a boot ends this program; TestBoot in applier/winhost"
		full = "a full drive C: would stop other programs of this machine; files.TestReasonOfAFileError has the errors of Windows"
	)
	return map[string]string{
		"services with automatic start and their dependencies are started at boot": boot,
		"the boot time changes with a boot":                                        boot,
		"a new host name takes effect with the next boot":                          boot,
		"a Windows feature takes effect with the next boot":                        boot,
		"a file takes its room, and gives it back when it is removed":              full,
		"a file for which there is no room changes nothing and leaves no file":     full,
	}
}

// SkipsOnWine returns the clauses that are not tested under Wine, and why.
func SkipsOnWine() map[string]string {
	all := skipsEverywhere()
	for clause, g := range notOnWine() {
		all[clause] = g.lacks + WindowsDoes + g.windows
	}
	return all
}

// WindowsDoes stands in a reason between what Wine lacks and the page about Windows.
const WindowsDoes = "; what Windows does: "

// gap is why Wine does not pass a clause.
type gap struct {
	// lacks is what Wine lacks, and what tests the clause instead.
	lacks string
	// windows is the page about the behavior of Windows, and so what the clause expects of it.
	windows string
}

// notOnWine has the clauses that Wine 10 does not pass.
func notOnWine() map[string]gap {
	const (
		pages        = "learn.microsoft.com/windows/win32/"
		undocumented = "no page says it, a result in golden/real will"
	)
	var (
		links    = gap{"Wine cannot create links; TestLinks has links that Linux created", pages + "fileio/reparse-points-and-file-operations"}
		access   = gap{"Wine keeps only what fits into the mode of a Linux file; files.TestAccessOf, and internal/test/winetest checks the modes", pages + "secauthz/how-dacls-control-access-to-an-object"}
		owners   = gap{"Wine keeps no owners; files.TestOwnerOf", pages + "secauthz/owner-of-a-new-object"}
		inherits = gap{"Wine inherits nothing; files.TestAccessOf has the entries that are inherited", pages + "secauthz/ace-inheritance-rules"}
		depends  = gap{"the service manager of Wine ignores dependencies; the host in memory of hostsim",
			pages + "api/winsvc/nf-winsvc-startservicew"}
		stops    = gap{depends.lacks, pages + "api/winsvc/nf-winsvc-controlservice"}
		itself   = gap{depends.lacks, pages + "api/winsvc/nf-winsvc-changeserviceconfigw"}
		system   = gap{"Wine runs services as its one user; the host in memory of hostsim", pages + "api/winsvc/nf-winsvc-createservicew"}
		recovery = gap{"the service manager of Wine does nothing after a crash; the host in memory of hostsim",
			pages + "api/winsvc/ns-winsvc-service_failure_actionsw"}
		hns      = gap{"Wine has no HNS; networks.TestEndpoints", "learn.microsoft.com/windows-server/networking/technologies/hcn/hcn-top"}
		firewall = gap{"the firewall object of Wine has no members; settings.TestFirewall", pages + "api/netfw/nn-netfw-inetfwpolicy2"}
		defender = gap{"Wine has no Defender; settings.TestExclusions",
			"learn.microsoft.com/previous-versions/windows/desktop/defender/msft-mppreference"}
		dism = gap{"Wine has no DISM; settings.TestFeatures",
			"learn.microsoft.com/windows-hardware/manufacture/desktop/dism/dismenablefeature-function"}
		routes = gap{"Wine has no function that changes routes; networks.TestRoutes", pages + "api/netioapi/nf-netioapi-createipforwardentry2"}
		moved  = gap{"Wine renames a folder in which files are open; the host in memory of hostsim",
			"learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/ns-ntifs-_file_rename_information"}
		argv    = gap{"Wine, as Windows, expands %NAME% in the command line of a service; TestArgumentsOfServices has the other arguments", undocumented}
		environ = gap{"Wine ignores the Environment value of a service; another clause reads it back", undocumented}
	)
	return map[string]gap{
		"a symbolic link or junction is neither file nor folder and is not followed": links,
		"removing a symbolic link or junction keeps its target":                      links,
		"neither a file nor a folder replaces a symbolic link or junction":           links,
		"users read files for users and not those for administrators":                access,
		"users never read a secret, not even while it replaces a public file":        access,
		"a file that everybody may write to has access other":                        access,
		"what a program makes in a folder has the access of the folder":              inherits,
		"what another user made is that user's until MakeDirectory takes it":         owners,
		"what another user made stays that user's when it is moved":                  owners,
		"the folder of the lock is refused while another user owns it":               owners,
		"a folder in which a program runs is not moved":                              moved,
		"the dependencies of a service are started first":                            depends,
		"a service with a missing or failing dependency does not start":              depends,
		"the running dependents of a service are listed, indirect ones too":          stops,
		"a service with running dependents is not stopped":                           stops,
		"a service cannot depend on itself":                                          itself,
		"a service runs as SYSTEM":                                                   system,
		"a service that crashes is started again as its recovery says":               recovery,
		"a service that crashed is started again with what is configured by then":    recovery,
		"a pending Windows feature is withdrawn without a boot":                      dism,
		"an HNS endpoint is made and removed":                                        hns,
		"an HNS network is removed and never made":                                   hns,
		"a firewall rule is set, changed and removed":                                firewall,
		"an exclusion is set and removed where Defender runs":                        defender,
		"a route is set, changed and removed":                                        routes,
		"a route to the next hop of the default route is read as via default":        routes,
		"a service gets its arguments unchanged":                                     argv,
		"a service gets its environment":                                             environ,
	}
}
