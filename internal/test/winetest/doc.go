// Package winetest runs Windows programs in tests on Linux, under the Wine that `make wine` installs. Each test has
// its own Windows: a drive C:, a registry, and processes that end with the test.
//
//	make wine:  root/ (Debian with Wine) --first test--> prefix-<digest>/ (a Windows Server 2022, once per computer)
//	each test:  prefix-<digest>/ --clone--> a machine (namespaces, with Wine not as root) --Run--> Result
//
// It needs root, and changes nothing outside its cache. Wine differs from Windows. What it does not do is tested
// elsewhere.
package winetest
