// Package settings reads and changes the settings of the host: environment variables, trusted CAs, Windows features,
// firewall rules, exclusions of Defender and the host name. Package networks has the settings of networks.
//
//	names by kind --> one Keeper for each kind --> the API of Windows behind a small interface
//
// A Keeper decides, and its tests run on every system with fakes that behave as Microsoft documents. The calls of the
// API are in the _windows files: registry, certificate store, DISM, and COM for the firewall and Defender. Wine has no
// DISM, no Defender and no firewall, so those calls run on a real Windows only.
package settings
