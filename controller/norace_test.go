//go:build !race

package controller

const underRace = false
