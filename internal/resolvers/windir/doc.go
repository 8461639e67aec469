// Package windir holds the test of which directory containerd reads on Windows, the one rule of its resolver that depends
// on the system (remotes/docker/config/config_windows.go: a name with a port is looked up as H_P_, then as HP; elsewhere
// as H_P_, then as H:P). The test runs everywhere and asks for the rule of the system that it runs on; built for Windows,
//
//	GOOS=windows GOARCH=amd64 go test -c -o windir.test.exe ./windir
//
// it needs nothing but itself.
package windir
