/// Tests seeds, and folders of checkpoints.

#include "stagecraft/actors/trainer/checkpoint_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <set>
#include <utility>

#include <torch/torch.h>

#include "stagecraft/actors/trainer/state/trainer_state.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/captured_stderr.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/file_size_limit.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/support/steady_clock.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Holds a trainer of a model with dropout.
struct Dropping {
  explicit Dropping(std::optional<std::uint64_t> seed,
                    Program made = make_program({.dropout = 0.2}))
      : program(std::move(made)),
        trainer(
            cluster, program, make_schedule("1f1b", program), AdamW{.lr = 1e-2}, {.seed = seed}) {}

  std::vector<double> losses(std::int64_t until) {
    std::vector<double> all;
    while (trainer.steps() < until) {
      all.push_back(step_of(trainer, trainer.steps()).get().mean_loss);
    }
    return all;
  }

  Program program;
  Cluster cluster = Cluster::local(2);
  Trainer trainer;
};

// ---- seeds --------------------------------------------------------------------------------------

TEST_CASE("without a seed torch::manual_seed decides what is dropped", "[integration][seed]") {
  const Program program = make_program({.dropout = 0.2});  // first: it seeds its weights
  const auto losses_with = [&](std::uint64_t seed) {
    torch::manual_seed(seed);
    Dropping run(std::nullopt, program);
    CHECK(run.trainer.seed() == seed);
    return run.losses(2);
  };
  const std::vector<double> seven = losses_with(7);
  CHECK(losses_with(7) == seven);
  CHECK(losses_with(8) != seven);
  CHECK(Dropping(7, program).losses(2) == seven);

  torch::manual_seed(7);
  Dropping first(std::nullopt, program);
  const at::Tensor drawn = torch::rand({1000});
  Dropping second(std::nullopt, program);  // regardless of the draws in between
  CHECK(first.losses(2) == seven);
  CHECK(second.losses(2) == seven);
  Reference reference(first.program, AdamW{.lr = 1e-2}, {});
  const Data batch = data(0);
  CHECK(reference.step(batch.inputs, batch.labels).mean_loss == seven[0]);
  torch::manual_seed(7);
  CHECK(torch::equal(torch::rand({1000}), drawn));  // the trainer has drawn nothing
}

TEST_CASE("a checkpoint of another seed continues with the seed that is asked for",
          "[integration][seed]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  Dropping unbroken(9);
  (void)unbroken.losses(2);
  unbroken.trainer.save(path);
  const std::vector<double> rest = unbroken.losses(4);

  Dropping other(8);
  CHECK_THAT(refusal([&] { other.trainer.load(path); }, Errc::CheckpointMismatch),
             ContainsSubstring("of seed 9") && ContainsSubstring("SeedFrom::Checkpoint"));
  CHECK(other.trainer.steps() == 0);
  other.trainer.load(path, SeedFrom::Checkpoint);
  CHECK(other.trainer.seed() == 9);
  CHECK(other.losses(4) == rest);
  CHECK(same_bits(other.trainer.state_dict(), unbroken.trainer.state_dict()));
  other.trainer.save(path);
  CHECK(read_checkpoint(path).seed == 9);

  Dropping own(8);
  own.trainer.load(path, SeedFrom::Trainer);
  CHECK(own.trainer.seed() == 8);
  CHECK(own.losses(6) != unbroken.losses(6));
}

TEST_CASE("a trainer without a seed takes that of a checkpoint, and says so once",
          "[integration][seed]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const Program program = make_program({.dropout = 0.2});  // first: it seeds its weights
  Dropping unbroken(9, program);
  (void)unbroken.losses(2);
  unbroken.trainer.save(path);
  const auto told_by_load = [&](Dropping& run, SeedFrom seed_from) {
    const CapturedStderr captured;
    run.trainer.load(path, seed_from);
    return captured.text();
  };

  torch::manual_seed(8);  // as code of the data may do
  Dropping unnamed(std::nullopt, program);
  CHECK_THAT(told_by_load(unnamed, SeedFrom::Same),
             ContainsSubstring("warning the checkpoint's seed is used") &&
                 ContainsSubstring("TrainerOptions::seed") &&
                 ContainsSubstring(" seed=9 instead_of=8\n"));
  CHECK(unnamed.trainer.seed() == 9);
  CHECK(told_by_load(unnamed, SeedFrom::Same).empty());
  CHECK(unnamed.losses(4) == unbroken.losses(4));

  // Nothing is told to those who named a seed, or whose seed is the checkpoint's.
  Dropping named(9, program), asked(8, program), own(8, program);
  CHECK(told_by_load(named, SeedFrom::Same).empty());
  CHECK(told_by_load(asked, SeedFrom::Checkpoint).empty());
  CHECK(told_by_load(own, SeedFrom::Trainer).empty());
  torch::manual_seed(9);
  Dropping alike(std::nullopt, program);
  CHECK(told_by_load(alike, SeedFrom::Same).empty());
}

// ---- a folder -----------------------------------------------------------------------------------

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

Checkpoint checkpoint_of(std::int64_t step, std::int64_t numbers = 4) {
  return {{.step = step, .seed = 1, .optimizer = "sgd"},
          {{"weight:a", torch::full({numbers}, static_cast<double>(step))}}};
}

/// Holds a trainer whose state can be after any number of updates.
class AtAnyStep {
 public:
  Trainer& at(std::int64_t step) {
    state_.step = step;
    run_.trainer.load(state_);
    return run_.trainer;
  }

 private:
  Dropping run_{9};
  Checkpoint state_ = run_.trainer.checkpoint();
};

/// Requires that the current write is over, and has gone well.
void expect_saved(const std::optional<SavedCheckpoint>& saved, std::int64_t step) {
  REQUIRE(saved);
  CHECK(saved->step == step);
  CHECK_FALSE(saved->failure);
  CHECK(std::filesystem::exists(saved->path));
}

TEST_CASE("a run that is resumed from a folder equals one that never stopped",
          "[integration][checkpoints]") {
  const TemporaryFolder folder;
  const std::string place = folder.path() + "/run";
  Dropping unbroken(9);
  {
    CheckpointFolder checkpoints(place, 2);
    CHECK_FALSE(checkpoints.resume(unbroken.trainer));
    std::int64_t told = 0;
    for (int step = 1; step <= 4; ++step) {
      (void)unbroken.losses(step);
      if (const auto before = checkpoints.save(unbroken.trainer)) {
        expect_saved(before, ++told);
      }
    }
    expect_saved(checkpoints.wait(), 4);
    CHECK_FALSE(checkpoints.wait());
  }
  CHECK(names_in(place) == std::set<std::string>{"step-000000003.ckpt", "step-000000004.ckpt"});
  (void)unbroken.losses(6);

  std::filesystem::resize_file(place + "/step-000000004.ckpt", 100);  // the newest is broken
  Dropping resumed(9);
  CheckpointFolder checkpoints(place, 2);
  CHECK(checkpoints.resume(resumed.trainer) == place + "/step-000000003.ckpt");
  CHECK(resumed.trainer.steps() == 3);
  (void)resumed.losses(6);
  CHECK(same_bits(resumed.trainer.state_dict(), unbroken.trainer.state_dict()));
  CHECK_FALSE(checkpoints.save(resumed.trainer));
  expect_saved(checkpoints.wait(), 6);
  const CheckpointSearch search = find_checkpoint(place);
  REQUIRE(search.newest);
  CHECK(search.newest->step == 6);
  CHECK(search.newest->seed == 9);
  CHECK(search.broken.empty());
}

/// Returns the bytes that this process has read from files so far; nothing if the system does not
/// say.
std::optional<std::uint64_t> bytes_read() {
  std::ifstream counts("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  return counts >> name >> bytes && name == "rchar:" ? std::optional(bytes) : std::nullopt;
}

TEST_CASE("a run resumes with one reading for the checksum and one for the tensors",
          "[integration][checkpoints]") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path());
  Dropping run(9, make_program({.width = 300}));
  CHECK_FALSE(checkpoints.save(run.trainer));
  const auto saved = checkpoints.wait();
  expect_saved(saved, 0);
  const auto size = std::filesystem::file_size(saved->path);
  REQUIRE(size > 1'000'000);  // beside it, what threads read of each other is nothing
  const auto before = bytes_read();
  CHECK(checkpoints.resume(run.trainer) == saved->path);
  const auto after = bytes_read();
  if (before && after) {
    CHECK(*after - *before < size / 2 * 5);
  }
}

TEST_CASE("a state of more bytes than are read at once is saved and loaded by any cut",
          "[integration][checkpoints]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/wide.ckpt";
  const auto program_of = [](int stages) {
    return make_program({.stages = stages, .width = 3000});
  };
  const auto trainer_of = [](const Cluster& cluster, const Program& program) {
    return Trainer(cluster, program, make_schedule("1f1b", program), Sgd{.lr = 0.1});
  };
  const Program two = program_of(2);
  const Cluster two_ranks = Cluster::local(2);
  Trainer saved = trainer_of(two_ranks, two);
  (void)step_of(saved, 0).get();
  saved.save(path);
  CHECK(std::filesystem::file_size(path) > 2 * kReadBytes);

  const Program four = program_of(4);
  const Cluster four_ranks = Cluster::local(4);
  Trainer loaded = trainer_of(four_ranks, four);
  loaded.load(path);
  CHECK(loaded.steps() == 1);
  CHECK(same_bits(loaded.state_dict(), saved.state_dict()));
}

TEST_CASE("the newest whole checkpoint is found, and the broken ones are named",
          "[integration][checkpoints]") {
  const TemporaryFolder folder;
  CHECK_FALSE(find_checkpoint(folder.path()).newest);
  CHECK_FALSE(find_checkpoint(folder.path() + "/none").newest);
  write_checkpoint(folder.path() + "/step-000000009.ckpt", checkpoint_of(9));
  write_checkpoint(folder.path() + "/step-1000000000.ckpt", checkpoint_of(1'000'000'000));
  folder.write("step-2000000000.ckpt", "STGCRAFT");
  std::filesystem::create_directory(folder.path() + "/step-3000000000.ckpt");
  write_checkpoint(folder.path() + "/other.ckpt", checkpoint_of(4'000'000'000));
  const CheckpointSearch search = find_checkpoint(folder.path());
  REQUIRE(search.newest);
  CHECK(search.newest->step == 1'000'000'000);
  REQUIRE(search.broken.size() == 2);
  CHECK_THAT(search.broken[0].message(), ContainsSubstring("step-3000000000.ckpt"));
  CHECK_THAT(search.broken[1].message(), ContainsSubstring("step-2000000000.ckpt"));
  CHECK_THAT(
      refusal([&] { (void)find_checkpoint(folder.path() + "/other.ckpt"); }, Errc::UsageFile),
      ContainsSubstring("other.ckpt"));
}

TEST_CASE("CS-2: older ones go when a newer one stands; later ones and other files stay",
          "[integration][checkpoints]") {
  const TemporaryFolder folder;
  folder.write("notes.txt", "mine");
  folder.write("step-x.ckpt", "mine, too");
  CheckpointFolder checkpoints(folder.path(), 1);
  AtAnyStep run;
  for (const std::int64_t step : {5, 7, 6}) {
    (void)checkpoints.save(run.at(step));
  }
  expect_saved(checkpoints.wait(), 6);
  CHECK(names_in(folder.path()) ==
        std::set<std::string>{
            "notes.txt", "step-000000006.ckpt", "step-000000007.ckpt", "step-x.ckpt"});
}

TEST_CASE("CS-3: a save that fails is told once, keeps what was there, and the next one is made",
          "[integration][checkpoints]") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path(), 1);
  AtAnyStep run;
  CHECK_FALSE(checkpoints.save(run.at(1)));
  std::filesystem::create_directory(folder.path() + "/step-000000002.ckpt");
  expect_saved(checkpoints.save(run.at(2)), 1);
  const auto failed = checkpoints.save(run.at(3));
  REQUIRE(failed);
  CHECK(failed->step == 2);
  REQUIRE(failed->failure);
  CHECK(failed->failure->code() == Errc::UsageFile);
  CHECK_THAT(failed->failure->message(), ContainsSubstring("step-000000002.ckpt"));
  expect_saved(checkpoints.wait(), 3);
  CHECK_FALSE(checkpoints.done());
  CHECK(find_checkpoint(folder.path()).newest->step == 3);
  CHECK_THAT(refusal([&] { const CheckpointFolder none(folder.path(), 0); }),
             ContainsSubstring("at least one"));
  CHECK_THAT(
      refusal([&] { const CheckpointFolder in_file(folder.write("file", "")); }, Errc::UsageFile),
      ContainsSubstring("file"));
}

/// A clock whose second thread finds no memory.
class OneThread final : public testing::SteadyClock {
 public:
  [[nodiscard]] std::unique_ptr<Thread> start(std::function<void()> work) const override {
    if (std::exchange(is_started_, true)) {
      throw std::bad_alloc();
    }
    return Clock::start(std::move(work));
  }

 private:
  mutable bool is_started_ = false;
};

TEST_CASE("CS-3: a save for whose thread there is no memory fails, and the next one is made",
          "[integration][checkpoints]") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path());
  AtAnyStep run;
  Trainer& trainer = run.at(1);
  {
    const ClockOfThread scope(std::make_shared<OneThread>());
    CHECK_FALSE(checkpoints.save(trainer));
  }
  const auto failed = checkpoints.done();  // known at once
  REQUIRE(failed);
  CHECK(failed->step == 1);
  REQUIRE(failed->failure);
  CHECK_THAT(failed->failure->message(),
             ContainsSubstring("step-000000001.ckpt' was not written: std::bad_alloc"));
  CHECK(names_in(folder.path()).empty());
  CHECK_FALSE(checkpoints.save(run.at(2)));
  expect_saved(checkpoints.wait(), 2);
}

TEST_CASE("CS-3: a disk that fills in the midst of a save leaves no file, and training continues",
          "[integration][checkpoints]") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path());
  Dropping run(9, make_program({.dropout = 0.2, .width = 64}));  // its state is larger than that
  (void)run.losses(1);
  std::optional<SavedCheckpoint> failed;
  {
    const FileSizeLimit full(4096);
    CHECK_FALSE(checkpoints.save(run.trainer));
    failed = checkpoints.wait();
  }
  REQUIRE(failed);
  CHECK(failed->step == 1);
  REQUIRE(failed->failure);
  CHECK(failed->failure->code() == Errc::UsageFile);
  CHECK_THAT(failed->failure->message(), ContainsSubstring("step-000000001.ckpt"));
  CHECK(names_in(folder.path()).empty());
  (void)run.losses(2);
  CHECK_FALSE(checkpoints.save(run.trainer));
  expect_saved(checkpoints.wait(), 2);
}

TEST_CASE("CS-4: a folder is one run's, and what a killed one left half-written is removed",
          "[integration][checkpoints]") {
  const TemporaryFolder folder;
  folder.write("step-000000004.ckpt.part-AbCd1234", "half");
  folder.write("best.ckpt.part-00ff00ff", "half");
  const std::set<std::string> others{"mine.part-AbCd1234",
                                     "mine.ckpt.part-2",
                                     "mine.ckpt.part-AbCd123x",
                                     "mine.ckpt.part-AbCd1234.txt",
                                     "best.ckpt"};
  for (const std::string& name : others) {
    folder.write(name, "kept");
  }
  {
    CheckpointFolder first(folder.path());
    CHECK(names_in(folder.path()) == others);
    CHECK_THAT(refusal([&] { const CheckpointFolder second(folder.path()); }, Errc::UsageFile),
               ContainsSubstring("another run"));
    AtAnyStep run;
    (void)first.save(run.at(4));
  }  // waits for the current write
  const CheckpointFolder second(folder.path());
  CHECK(find_checkpoint(folder.path()).newest->step == 4);
}

TEST_CASE("a process that is killed while it writes leaves a folder that can be resumed",
          "[integration][checkpoints]") {
  const TemporaryFolder folder;
  const std::string whole = folder.path() + "/step-000000001.ckpt";
  write_checkpoint(whole, checkpoint_of(1));
  const Checkpoint half = checkpoint_of(2, 100'000);
  const pid_t child = fork();
  if (child == 0) {  // killed inside of a write: everything but the last act is done
    CheckpointSave save(folder.path() + "/step-000000002.ckpt", header_of(half));
    save.add(half.tensors[0].tensor);
    save.finish_writing();
    std::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(names_in(folder.path()).size() == 2);
  CHECK(find_checkpoint(folder.path()).newest->path == whole);
  const CheckpointFolder next(folder.path());
  CHECK(names_in(folder.path()) == std::set<std::string>{"step-000000001.ckpt"});
}

}  // namespace
}  // namespace stagecraft::tests
