// Package winetest runs Windows programs in tests on Linux, under the Wine that `make wine` installs. Each test has a
// Windows of its own: a drive C:, a registry, and processes that end with the test.
//
//	make wine:  root/ (Debian with Wine) --first test--> prefix-<digest>/ (a Windows Server 2022, once per machine)
//	each test:  prefix-<digest>/ --clone--> a machine (namespaces of its own, Wine not as root) --Run--> Result
//
// It needs root, and changes nothing outside its cache. Wine is not Windows: what it gets wrong is tested elsewhere.
package winetest
