/// Tests ranks that are processes: the same bits, and the effects of losing one of them.
#include <csignal>

#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/lingering_port.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kRunSteps = 3;

/// Trains on `cluster` and beside it in one process, and compares all results.
void check_processes_equal_to_one(const Cluster& cluster,
                                  const ModelOptions& model,
                                  const std::string& schedule) {
  const Program program = make_program(model);
  Trainer trainer(
      cluster, program, make_schedule(schedule, program), AdamW{.lr = 1e-2}, {.seed = 5});
  Reference reference(program, AdamW{.lr = 1e-2}, {.seed = 5, .threads = 1});
  for (int i = 0; i < kRunSteps; ++i) {
    const Data batch = data(i);
    const StepResult pipelined = trainer.step(batch.inputs, batch.labels).get();
    const ReferenceStep expected = reference.step(batch.inputs, batch.labels);
    CHECK(pipelined.losses == expected.losses);
    CHECK(pipelined.gradient_norm == expected.gradient_norm);
  }
  CHECK(same_bits(weights_of(trainer), weights_of(reference)));
}

TEST_CASE("ranks that are processes give the bits of one process", "[integration][processes]") {
  const Cluster cluster = Cluster::spawn(4);
  for (const char* schedule : {"gpipe", "1f1b", "own"}) {
    CAPTURE(schedule);
    check_processes_equal_to_one(cluster, {.stages = 4, .dropout = 0.2}, schedule);
  }
  check_processes_equal_to_one(cluster, {.stages = 4, .tied = true}, "1f1b");
}

TEST_CASE("so do several ranks in a process, and threads beside processes",
          "[integration][processes]") {
  const auto options = GENERATE(SpawnOptions{.ranks_per_process = 2},
                                SpawnOptions{.local_ranks = 2},
                                SpawnOptions{.ranks_per_process = 3, .local_ranks = 1});
  check_processes_equal_to_one(Cluster::spawn(4, options), {.stages = 4, .dropout = 0.2}, "1f1b");
}

TEST_CASE("the file of a worker says which stages its ranks run", "[integration][processes]") {
  const TemporaryFolder folder;
  const Program program = make_program({.stages = 4});
  const auto log_of = [&](const SpawnOptions& options, const std::string& name) {
    const int ranks = options.ranks_per_process == 1 ? 2 : 4;
    const Schedule schedule =
        ranks == 2 ? interleaved(2, kMicrobatches, 2) : make_schedule("1f1b", program);
    const Cluster cluster = Cluster::spawn(ranks, options);
    const Trainer trainer(cluster, program, schedule, AdamW{});
    return read_text_file(folder.path() + "/" + name);
  };
  CHECK_THAT(log_of({.log_dir = folder.path()}, "rank-1.log"),
             ContainsSubstring(" UTC driver: rank 1 runs stages 1, 3\n"));
  CHECK_THAT(log_of({.ranks_per_process = 2, .log_dir = folder.path()}, "ranks-2-3.log"),
             ContainsSubstring(" UTC driver: ranks 2-3 run stage 2 (rank 2)\n") &&
                 ContainsSubstring(" UTC driver: ranks 2-3 run stage 3 (rank 3)\n"));
}

/// Returns the weights after `steps` steps of an undisturbed run.
StateDict unbroken(const Program& program, const Schedule& schedule, int steps) {
  Trainer trainer(Cluster::local(4), program, schedule, AdamW{.lr = 1e-2}, {.seed = 5});
  for (int i = 0; i < steps; ++i) {
    (void)step_of(trainer, i).get();
  }
  return trainer.state_dict();
}

/// Holds a trainer on four processes, one of which a test disturbs.
struct Fixture {
  TemporaryFolder folder;
  Program program = make_program({.stages = 4, .tied = true});
  Schedule schedule = make_schedule("1f1b", program);
  std::chrono::seconds silence{2};
  Cluster cluster =
      Cluster::spawn(4, {.heartbeat = std::chrono::milliseconds(500), .silence = silence});
  Trainer trainer{cluster, program, schedule, AdamW{.lr = 1e-2}, {.seed = 5}};
  const std::string file = folder.path() + "/weights.ckpt";

  void signal(int rank, int number) const {
    REQUIRE(kill(static_cast<pid_t>(cluster.workers()[static_cast<std::size_t>(rank)].process),
                 number) == 0);
  }
};

TEST_CASE("a worker process that is killed fails the step by name, and another takes its place",
          "[integration][processes][faults]") {
  Fixture f;
  (void)step_of(f.trainer, 0).get();
  f.trainer.save(f.file);
  const std::int64_t first = f.cluster.workers()[2].process;
  f.signal(2, SIGKILL);
  const Error error = error_of(step_of(f.trainer, 1));
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(2));
  CHECK_THAT(error.what(), ContainsSubstring("was killed by signal 9"));
  CHECK_THAT(error.what(), ContainsSubstring(std::to_string(first)));
  CHECK_THAT(error_of(step_of(f.trainer, 1)).what(),
             ContainsSubstring("cluster.replace(Rank(2))") && ContainsSubstring("load"));

  f.cluster.replace(Rank(2));
  CHECK(f.cluster.workers()[2].incarnation == 1);
  CHECK(f.cluster.workers()[2].process != first);
  f.trainer.load(f.file);
  for (int i = 1; i < kRunSteps; ++i) {
    CHECK(step_of(f.trainer, i).get().step == i + 1);
  }
  CHECK(same_bits(f.trainer.state_dict(), unbroken(f.program, f.schedule, kRunSteps)));
}

TEST_CASE("between steps nobody waits, also not for a worker that is gone",
          "[integration][processes][faults]") {
  Fixture f;
  (void)step_of(f.trainer, 0).get();
  CHECK(f.trainer.waits().empty());
  f.signal(2, SIGKILL);
  REQUIRE(eventually([&] { return !f.trainer.status()[2].answers; }));
  CHECK(f.trainer.waits().empty());
}

TEST_CASE("ranks that are silent hold up the step, also when no other rank is in it",
          "[integration][processes][faults]") {
  Fixture f{.silence = std::chrono::seconds(60)};
  (void)step_of(f.trainer, 0).get();
  for (int rank = 0; rank < 4; ++rank) {
    f.signal(rank, SIGSTOP);
  }
  const StepFuture step = step_of(f.trainer, 1);
  CHECK_THAT(f.trainer.waits(), ContainsSubstring("is silent: its agent has not answered for"));
  for (int rank = 0; rank < 4; ++rank) {
    f.signal(rank, SIGCONT);
  }
}

TEST_CASE("several worker processes that are killed at once are replaced one by one",
          "[integration][processes][faults]") {
  Fixture f;
  (void)step_of(f.trainer, 0).get();
  f.trainer.save(f.file);
  f.signal(0, SIGKILL);
  f.signal(3, SIGKILL);
  const Error error = error_of(step_of(f.trainer, 1));
  CHECK(error.code() == Errc::WorkerLost);
  CHECK_THAT(error.what(), ContainsSubstring("was killed by signal 9"));
  f.cluster.replace(Rank(0));
  CHECK_THROWS_WITH(
      f.trainer.load(f.file),
      ContainsSubstring("cluster.replace") && ContainsSubstring("was killed by signal 9"));
  CHECK(error_of(step_of(f.trainer, 1)).code() == Errc::WorkerLost);  // still lost
  f.cluster.replace(Rank(3));
  f.trainer.load(f.file);
  CHECK(step_of(f.trainer, 1).get().step == 2);
  CHECK(same_bits(f.trainer.state_dict(), unbroken(f.program, f.schedule, 2)));
}

TEST_CASE("a worker process that is stopped is lost once it has been silent for too long",
          "[integration][processes][faults]") {
  Fixture f;
  (void)step_of(f.trainer, 0).get();
  f.trainer.save(f.file);
  f.signal(1, SIGSTOP);
  const Error error = error_of(step_of(f.trainer, 1));
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(1));
  CHECK_THAT(error.what(), ContainsSubstring("silent for 2000 ms"));

  f.cluster.replace(Rank(1));
  f.trainer.load(f.file);
  CHECK(step_of(f.trainer, 1).get().step == 2);
  CHECK(same_bits(f.trainer.state_dict(), unbroken(f.program, f.schedule, 2)));
}

TEST_CASE("a driver takes its port again right after its last end (TD-4)",
          "[integration][processes]") {
  const std::uint16_t port = lingering_port();
  check_processes_equal_to_one(Cluster::spawn(2, {.port = port}), {.stages = 2}, "1f1b");
}

TEST_CASE("a port at which somebody listens is not taken (TD-4)",
          "[integration][processes][refusals]") {
  const std::uint16_t port = lingering_port();
  const Program program = make_program({.stages = 2});
  const Cluster first = Cluster::spawn(2, {.port = port});
  const Trainer trainer(first, program, make_schedule("1f1b", program), Sgd{});
  CHECK_THROWS_WITH(
      Trainer(Cluster::spawn(2, {.port = port}), program, make_schedule("1f1b", program), Sgd{}),
      ContainsSubstring("cannot listen for workers") && ContainsSubstring("the port is taken") &&
          !ContainsSubstring("cannot_open_port"));  // CAF's word
}

TEST_CASE("a worker that is lost while its state is saved fails the save by name",
          "[integration][processes][faults]") {
  Fixture f;
  (void)step_of(f.trainer, 0).get();
  f.trainer.save(f.file);
  const std::string first = std::to_string(f.cluster.workers()[1].process);
  const auto save_error = [&] {
    for (;;) {  // until a step fails, which the loss causes
      try {
        f.trainer.save(f.folder.path() + "/broken.ckpt");
      } catch (const Error& error) {
        return error;
      }
    }
  };
  f.signal(1, SIGKILL);
  const Error error = save_error();
  CHECK(error.code() == Errc::WorkerLost);
  CHECK_THAT(error.what(),
             ContainsSubstring("process " + first) && ContainsSubstring("was killed by signal 9"));
  f.cluster.replace(Rank(1));
  f.trainer.load(f.file);
  CHECK(step_of(f.trainer, 1).get().step == 2);
}

TEST_CASE("a stopped worker is named as silent where it is asked for its state, not as ended",
          "[integration][processes][faults]") {
  Fixture f;
  (void)step_of(f.trainer, 0).get();
  f.signal(1, SIGSTOP);
  try {
    (void)f.trainer.state_dict();
    FAIL("the state was read");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::WorkerLost);
    CHECK_THAT(error.what(),
               ContainsSubstring("silent for 2000 ms") && !ContainsSubstring("has ended"));
  }
}

TEST_CASE("a rank that is a thread cannot be replaced, nor one that is not there",
          "[integration][processes][refusals]") {
  CHECK_THROWS_WITH(Cluster::local(2).replace(Rank(0)),
                    ContainsSubstring("rank 0 is a thread of this process"));
  CHECK_THROWS_WITH(Cluster::local(2).replace(Rank(2)), ContainsSubstring("ranks 0 to 1"));
  CHECK_THROWS_WITH(Cluster::spawn(2).replace(Rank(1)),
                    ContainsSubstring("no trainer of this cluster has had a worker"));
}

TEST_CASE("a program that is no worker is told as such", "[integration][processes][refusals]") {
  const Program program = make_program({.stages = 2});
  const auto train = [&](const SpawnOptions& options) {
    const Trainer trainer(
        Cluster::spawn(2, options), program, make_schedule("1f1b", program), Sgd{});
  };
  CHECK_THROWS_WITH(train({.program = "/nowhere/worker"}),
                    ContainsSubstring("found none at \"/nowhere/worker\""));
  CHECK_THROWS_WITH(train({.program = "/bin/false"}),
                    ContainsSubstring("ended with exit status 1 before it had joined"));
  CHECK_THROWS_WITH(train({.credentials = "/nowhere"}), ContainsSubstring("/nowhere"));
  CHECK_THROWS_WITH(train({.ranks_per_process = 0}), ContainsSubstring("at least 1 rank"));
  CHECK_THROWS_WITH(train({.heartbeat = std::chrono::seconds(3)}), ContainsSubstring("heartbeat"));
}

}  // namespace
}  // namespace stagecraft::tests
