// Package windir tests which directory containerd reads on Windows, the one rule of its resolver that depends on the
// system (remotes/docker/config/config_windows.go: a name with a port is looked up as H_P_, then as HP; elsewhere as
// H_P_, then as H:P). The test runs on every system and expects the rule of that system. Built for Windows, it is a
// single program:
//
//	GOOS=windows GOARCH=amd64 go test -c -o windir.test.exe ./windir
package windir
