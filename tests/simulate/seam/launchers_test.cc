/// Runs the contract of launchers on the simulated cluster; tests/integration/launchers_test.cc
/// runs it on the real ones.
#include <csignal>

#include "stagecraft/tests/conformance/launcher_conformance.h"
#include "stagecraft/tests/simulate/cluster.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::simulation {
namespace {

tests::LauncherUnderTest simulated_launcher(Network& network) {
  const auto processes = std::make_shared<Processes>(network, 2, /*outlives=*/false);
  const auto rank_of = [](const Processes& all, std::int64_t process) {
    return all.place(Rank(0)).process == process ? Rank(0) : Rank(1);
  };
  tests::LauncherUnderTest tested{
      .launcher = processes,
      .cause_of_kill = processes->workers_come() ? "is out of reach" : "was killed",
      .host = processes->workers_come() ? "simulated" : "",
      .bring = {}};
  tested.starts_early = true;
  tested.gives_up_soon = true;
  if (!processes->workers_come()) {
    tested.late_cause_of_kill = "still runs and has been silent";
  }
  const std::weak_ptr<Processes> known = processes;
  tested.send_signal = [known, rank_of](std::int64_t process, int signal) {
    const auto all = known.lock();
    const Rank rank = rank_of(*all, process);
    CHECK((signal == SIGKILL ? all->kill(rank)
                             : all->stop(rank, 2 * Network::kSilence, /*with_clock=*/false)));
  };
  tested.is_alive = [known](std::int64_t process) {
    const auto all = known.lock();  // processes end with their cluster
    return all != nullptr &&
           (all->place(Rank(0)).process == process || all->place(Rank(1)).process == process);
  };
  tested.is_told_in_time = [known](int rank) { return known.lock()->is_told_in_time(Rank(rank)); };
  return tested;
}

TEST_CASE("the simulated cluster keeps the contract of launchers", "[simulate][seam]") {
  const tests::LauncherCase& contract = GENERATE(from_range(tests::launcher_cases()));
  DYNAMIC_SECTION(contract.name) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      INFO("seed " << seed);
      const Job& work = tests::job_of_two_ranks();  // not on a strand: it computes for long
      World world(seed);
      const auto network = std::make_shared<Network>(world);
      world.run([&] { contract.run([&] { return simulated_launcher(*network); }, work); });
    }
  }
}

}  // namespace
}  // namespace stagecraft::simulation
