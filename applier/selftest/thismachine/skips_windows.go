package thismachine

// Skips implements selftest.Machine.
func (m Machine) Skips() map[string]string {
	const (
		boot = "a boot ends this program; TestBoot in applier/winhost"
		full = "a full drive C: would stop other programs of this machine; files.TestReasonOfAFileError has the errors of Windows"
	)
	skips := map[string]string{
		"services with automatic start and their dependencies are started at boot": boot,
		"the boot time changes with a boot":                                        boot,
		"a new host name takes effect with the next boot":                          boot,
		"a Windows feature takes effect with the next boot":                        boot,
		"a file takes its room, and gives it back when it is removed":              full,
		"a file for which there is no room changes nothing and leaves no file":     full,
	}
	if m.Wine {
		for clause, why := range notOnWine() {
			skips[clause] = why
		}
	}
	return skips
}

// notOnWine has the clauses that Wine 10 does not pass, each with what Wine lacks and what tests the clause instead.
func notOnWine() map[string]string {
	const (
		links    = "Wine cannot create links; TestLinks has links that Linux created"
		access   = "Wine keeps only what fits into the mode of a Linux file; files.TestAccessOf, and internal/test/winetest checks the modes"
		depends  = "the service manager of Wine ignores dependencies; the host in memory of hostsim"
		hns      = "Wine has no HNS; networks.TestEndpoints"
		firewall = "the firewall object of Wine has no members; settings.TestFirewall"
		defender = "Wine has no Defender; settings.TestExclusions"
		dism     = "Wine has no DISM; settings.TestFeatures"
		routes   = "Wine has no function that changes routes; networks.TestRoutes"
	)
	return map[string]string{
		"a symbolic link or junction is neither file nor folder and is not followed": links,
		"removing a symbolic link or junction keeps its target":                      links,
		"neither a file nor a folder replaces a symbolic link or junction":           links,
		"users read files for users and not those for administrators":                access,
		"users never read a secret, not even while it replaces a public file":        access,
		"a file that everybody may write to has access other":                        access,
		"what another user made is that user's until MakeDirectory takes it":         access,
		"what another user made stays that user's when it is moved":                  access,
		"the folder of the lock is refused while another user owns it":               access,
		"a folder in which a program runs is not moved":                              "Wine renames a folder in which files are open",
		"the dependencies of a service are started first":                            depends,
		"a service with a missing or failing dependency does not start":              depends,
		"the running dependents of a service are listed, indirect ones too":          depends,
		"a service with running dependents is not stopped":                           depends,
		"a service cannot depend on itself":                                          depends,
		"a pending Windows feature is withdrawn without a boot":                      dism,
		"an HNS endpoint is made and removed":                                        hns,
		"an HNS network is removed and never made":                                   hns,
		"a firewall rule is set, changed and removed":                                firewall,
		"an exclusion is set and removed where Defender runs":                        defender,
		"a route is set, changed and removed":                                        routes,
		"a route to the next hop of the default route is read as via default":        routes,
		"a service gets its arguments unchanged":                                     "Windows too expands %NAME% in the command line of a service; TestArgumentsOfServices has the other arguments",
		"a service gets its environment":                                             "Wine ignores the Environment value of a service; another clause reads it back",
	}
}
