package jointest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// inMemory are the stories that TestInMemory plays.
var inMemory = []func(*testing.T){
	TestAFleetOfAllGenerationsIsAdopted, TestANodeIsAdoptedByAnAnnotation, TestAnAdoptionWithoutADrain,
	TestAHostWithAnotherKeyThanThePinnedOneIsNotAdopted, TestANodeCannotHaveAnotherHostAdopted, TestAnOperatorIsKilledWhileItAdopts,
	TestARolledBackAdoptionLeavesTheExistingAgent, TestTheSettingAdoptsAllNodes, TestAnAdoptionIsWithdrawn, TestANodeIsRemovedByItsAgent,
	TestANodeCannotHaveAnotherHostRemoved, TestANodeCannotTakeAnotherHost, TestANodeCannotLeaveTheRecord,
	TestAHostThatIsAnotherNodeIsNotChanged, TestANameThatAHostHasIsNotGivenAway, TestASecondEntryOfAHostIsRefused,
	TestFactsOfANodeAreNotSignedUnlessTheyAreItsHosts, TestANameThatWindowsReservesKeepsNoOtherHostFromJoining,
	TestJoinsAndRemovalsWhileTheAPIServerHasBadDays, TestARemovalThatIsTakenBackAfterAChangeOfTheInputs,
	TestANodeJoinsWhileItsOperatorIsExchanged, TestWhatIsWrongWithAHostIsSaidAndHoldsUpNobody, TestAForcedRemovalForgetsItsOwnHostAlone,
	TestMachinesAndInstancesBecomeNodes, TestTheKeyIsChangedAgainBeforeHostsHaveIt, TestAClusterUpdateExchangesKubelets,
	TestARunOfAnotherProcessIsWaitedFor, TestALiarDoesNotBecomeAnotherHostsNode, TestARenamedEntryKeepsItsNode,
	TestAnInstanceGetsCertificatesOfOneName, TestALiarGetsServingCertificatesForItselfAlone, TestTheKeyOfTheOperatorIsExchanged,
	TestAnotherAccountOfAnEntryIsTakenUp, TestHostsBehindTranslatedAddresses, TestAHostOfAnotherClusterIsLeftAlone,
	TestAHostWithAnotherNameIsNotTheNode, TestANewNodeIsUncordonedWithItsPinnedImages, TestMachinesThatAreRefusedHoldOnlyTheirHosts,
	TestMachinesThatAreRefusedWhileTheOperatorWorks, TestAHostThatHasLostItsNodeBeforeItWasComplete, TestARemovedEntryLeavesNothing,
	TestTheRemovalOfAHostThatIsOffWaitsUntilItIsForced, TestAnEmptyListRemovesNothing, TestADeletedMachineIsLeftToMachineAPI,
	TestMachinesThatRefuseTheKeyAreReplacedIfAsked, TestMachinesGetTheAddressesOfThoseThatGo, TestAKeyThatAPersonPinsForAMachineIsKept,
	TestTwoMachinesWithOneAddress, TestAnEntryThatIsReplacedByAnotherAddressOfTheHost, TestAMachineWhoseAddressesChangeBeforeItsNode,
	TestWhoMayPatchNodesRunsNothing, TestSigningKeysAreRotated, TestALostSigningSecretStopsUpdatesAlone,
	TestAnEntryThatComesBackBeforeTheCleanup, TestTheOperatorIsKilledWhileMachinesJoin,
	TestARunThatWaitsForAKilledOperatorIsConfirmedByTheNextOne, TestTheLeaderChangesWhileMachinesJoin, TestANewOperatorBringsItsExecutables,
	TestANewAgentThatDoesNotWorkIsExchangedForTheOneBefore, TestTheClusterGetsWhatTheOperatorAdds,
	TestAMachineOfEachPlatformBecomesANode,
}

// onlyReal are the others, with what they need.
var onlyReal = map[string]string{
	"TestAHostWithAnExpiredCertificateJoinsAgain":              "API servers that are asked for the time",
	"TestALeaderThatWasFrozenChangesNothing":                   "a process is stopped and goes on",
	"TestAMachineIsWaitedForAndLeftWhenItIsDeleted":            "a Machine goes while it joins, which takes no time in memory",
	"TestANewOperatorsExecutablesAreFetched":                   "registries over TCP",
	"TestAnAdoptionIsRolledBackWhereTheKubeletDoesNotComeBack": "a policy of the API server with an expression",
	"TestBothWaysOfARelease":                                   "executables of the size of a release",
	"TestCloudNodeManagerHasAnIdentityOnAzure":                 "a client of the URL of the API server",
	"TestHostsJoinWithWhatTheyFetch":                           "registries over TCP",
	"TestImpostorsGetNoCertificate":                            "SubjectAccessReviews",
	"TestJoinsAndRemovalsLeaveNothingBehind":                   "the memory of a process",
	"TestJoinsAndRemovalsWhenEtcdIsRestored":                   "an etcd is restored",
	"TestNodesOfThisControlPlane":                              "it asks a control plane that a person names",
	"TestSilentHostsHoldUpNobody":                              "SSH servers that stop to answer",
	"TestTakeover":                                             "the requests of the audit log",
	"TestTheAPIServerIsExchangedForNewerMinorVersions":         "API servers of several minor versions",
	"TestTheAPIServerRestartsWhileMachinesJoin":                "the process of an API server ends",
	"TestTheCommandsSeeWhatTheOperatorDoes":                    "a client of the URL of the API server",
	"TestTheGuideOfVSphereIsFollowed":                          "kubectl",
	"TestTheGuideOfYourOwnHostsIsFollowed":                     "kubectl",
	"TestThePageOfKeysIsFollowed":                              "kubectl",
	"TestThePageOfTheTakeoverIsFollowed":                       "kubectl",
}

// nameOf returns the name of a story.
func nameOf(story func(*testing.T)) string {
	name := runtime.FuncForPC(reflect.ValueOf(story).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// TestInMemory plays stories in memory and in virtual time, with the code of the operator, of the node agents and of SSH.
func TestInMemory(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil    // the library pauses after errors by a clock that it shares with what is outside of the bubble
	percent := debug.SetGCPercent(400) //nolint:mnd // worlds are small and make much garbage
	t.Cleanup(func() {                 // after all stories, which run when this function has returned
		utilruntime.ErrorHandlers = handlers
		debug.SetGCPercent(percent)
	})
	for _, story := range inMemory {
		t.Run(nameOf(story), func(t *testing.T) {
			t.Parallel()
			playInMemory(t, story)
		})
	}
}

// TestEachStoryIsPlayed: a story is played in memory too, or onlyReal has what it needs.
func TestEachStoryIsPlayed(t *testing.T) {
	played := map[string]bool{"TestInMemory": true, "TestEachStoryIsPlayed": true, "TestMain": true}
	for _, story := range inMemory {
		played[nameOf(story)] = true
	}
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	found := map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			found[f.Name.Name] = true
			if _, isReal := onlyReal[f.Name.Name]; played[f.Name.Name] == isReal {
				t.Errorf("%s is to be in inMemory or in onlyReal, and not in both", f.Name.Name)
			}
		}
	}
	for name := range onlyReal {
		if !found[name] {
			t.Errorf("there is no story %s", name)
		}
	}
}
