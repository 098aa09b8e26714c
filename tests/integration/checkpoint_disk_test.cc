/// Tests what is left of a folder of checkpoints when the machine ends at any instant, and when any
/// operation of the disk fails.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/actors/trainer/checkpoint_folder.h"
#include "stagecraft/tests/faults/simulated_disk.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Small has a trainer with a small state, after any number of updates.
class Small {
 public:
  explicit Small(const ModelOptions& model = {.stages = 1, .statistics = false})
      : program_(make_program(model)) {}

  Trainer& at(std::int64_t step) {
    state_.step = step;
    trainer_.load(state_);
    return trainer_;
  }

 private:
  Program program_;
  Trainer trainer_{
      Cluster::local(1), program_, make_schedule("1f1b", program_), Sgd{}, {.seed = 9}};
  Checkpoint state_ = trainer_.checkpoint();
};

/// A disk whose files need not outlive this test, so that it waits for no real one.
class Careless final : public Disk {
 public:
  int synchronize(int /*file*/) override { return 0; }
  int synchronize_folder(const std::string& /*path*/) override { return 0; }
};

/// Looks through a folder with the disk of the system.
CheckpointSearch found_in(const std::string& folder) {
  const DiskOfThread real(Disk::system());
  return find_checkpoint(folder);
}

/// OnDisk saves the state to a folder of a simulated disk.
class OnDisk {
 public:
  explicit OnDisk(Small& small, SimulatedDisk::Lie lie = SimulatedDisk::Lie::None)
      : small_(small), disk_(std::make_shared<SimulatedDisk>(root_.path(), lie)), scope_(disk_) {}

  [[nodiscard]] SimulatedDisk& disk() const { return *disk_; }
  [[nodiscard]] std::string folder() const { return root_.path() + "/" + kFolder; }
  static constexpr const char* kFolder = "runs/first";

  /// Requires: `folder` is a folder of checkpoints here. Returns the outcome.
  SavedCheckpoint save(CheckpointFolder& checkpoints, std::int64_t step) {
    REQUIRE_FALSE(checkpoints.save(small_.at(step)));
    const auto saved = checkpoints.wait();
    REQUIRE(saved);
    CHECK(saved->step == step);
    if (!saved->failure) {
      said_.emplace_back(disk_->operations(), step);
    }
    return *saved;
  }

  /// Expects this step from now on as if it was said to be saved.
  void expect(std::int64_t step) { said_.emplace_back(disk_->operations(), step); }

  /// Returns the newest step that was said to be saved after so many operations.
  [[nodiscard]] std::int64_t said_after(std::int64_t operations) const {
    std::int64_t newest = 0;
    for (const auto& [count, step] : said_) {
      newest = count <= operations ? std::max(newest, step) : newest;
    }
    return newest;
  }

  /// Ends the machine after each number of operations, from `first` on. Returns what is not as
  /// promised then; "" if nothing is.
  std::string complaint(std::int64_t first = 0) {
    for (std::int64_t count = first; count <= disk_->operations(); ++count) {
      for (Remains& remains : disk_->remains_after(count)) {
        const std::int64_t said = said_after(count);
        if (const auto [end, is_new] = ends_.emplace(said, std::move(remains)); is_new) {
          lay_out(end->second, after_.path());
          if (std::string found = complaint_about(said); !found.empty()) {
            return found;
          }
        }
      }
    }
    return "";
  }
  /// Counts the different ends that complaint() has made.
  [[nodiscard]] std::size_t ends() const { return ends_.size(); }

 private:
  /// Returns what is wrong with the files that were left; "" if nothing is.
  [[nodiscard]] std::string complaint_about(std::int64_t said) const {
    const DiskOfThread real(std::make_shared<Careless>());
    const std::string left = after_.path() + "/" + kFolder;
    const CheckpointSearch search = find_checkpoint(left);
    if (!search.broken.empty()) {
      return "a file is broken that has its name";
    }
    if (said > 0 && (!search.newest || search.newest->step < said)) {
      return "a checkpoint is lost that was said to be saved";
    }
    const CheckpointFolder next(left);  // the run that continues
    for (const auto& entry : std::filesystem::directory_iterator(left)) {
      if (entry.path().extension() != ".ckpt") {
        return "a half-written file stays";
      }
    }
    return "";
  }

  Small& small_;
  const TemporaryFolder root_, after_;
  const std::shared_ptr<SimulatedDisk> disk_;
  const DiskOfThread scope_;
  std::vector<std::pair<std::int64_t, std::int64_t>> said_;  ///< after operations: the step
  std::set<std::pair<std::int64_t, Remains>> ends_;          ///< what was said, and is left
};

/// Saves newer steps, goes back, and saves steps again.
void save_a_few(OnDisk& run, int keep) {
  {
    CheckpointFolder checkpoints(run.folder(), keep);
    for (const std::int64_t step : {1, 2, 3}) {
      CHECK_FALSE(run.save(checkpoints, step).failure);
    }
  }
  CheckpointFolder checkpoints(run.folder(), keep);
  for (const std::int64_t step : {2, 3, 4}) {
    CHECK_FALSE(run.save(checkpoints, step).failure);
  }
}

TEST_CASE(
    "CK-1: a checkpoint that was said to be saved outlives the end of the machine, at any "
    "instant",
    "[integration][checkpoints]") {
  const int keep = GENERATE(1, 2);
  Small small;
  OnDisk run(small);
  save_a_few(run, keep);
  CHECK(run.complaint().empty());
  CHECK(run.ends() > 1000);
}

TEST_CASE("CK-1: a disk that does not synchronize loses checkpoints, so the test sees it",
          "[integration][checkpoints]") {
  Small small;
  OnDisk files(small, SimulatedDisk::Lie::OfFiles);
  save_a_few(files, 1);
  CHECK(files.complaint() == "a file is broken that has its name");
  OnDisk folders(small, SimulatedDisk::Lie::OfFolders);
  save_a_few(folders, 1);
  CHECK(folders.complaint() == "a checkpoint is lost that was said to be saved");
}

TEST_CASE("the end of the machine leaves one of its ends, from which the disk goes on",
          "[integration][checkpoints]") {
  const std::size_t chosen = GENERATE(0U, 1U);
  Small small;
  OnDisk run(small);
  {
    CheckpointFolder checkpoints(run.folder(), 1);
    CHECK_FALSE(run.save(checkpoints, 1).failure);
    CHECK_FALSE(run.save(checkpoints, 2).failure);
  }
  const std::vector<Remains> ends = run.disk().remains_after(run.disk().operations());
  REQUIRE(ends.size() == 2);  // the removal of the first file is not synchronized
  run.disk().end_machine([&](std::size_t count) {
    CHECK(count == 2);
    return chosen;
  });
  CHECK(std::filesystem::exists(run.folder() + "/step-000000001.ckpt") == (chosen == 0));
  const std::vector<Remains> after = run.disk().remains_after(run.disk().operations());
  CHECK(after.size() == 1);
  CHECK((after.front() == ends[chosen]));
  CheckpointFolder next(run.folder(), 1);
  CHECK(found_in(run.folder()).newest->step == 2);
  CHECK_FALSE(run.save(next, 3).failure);
  CHECK(run.complaint(run.disk().operations()).empty());
}

TEST_CASE("CS-3: any operation of the disk fails once, or the disk is full from it on",
          "[integration][checkpoints]") {
  const auto kind = GENERATE(DiskFault::Kind::Fail, DiskFault::Kind::Full, DiskFault::Kind::Short);
  Small small;
  int failures = 0, in_place = 0;
  bool struck = true;
  for (std::int64_t after = 0; struck; ++after) {
    OnDisk run(small);
    CheckpointFolder checkpoints(run.folder(), 1);
    CHECK_FALSE(run.save(checkpoints, 1).failure);
    const std::int64_t first = run.disk().operations();
    run.disk().strike({.operation = first + after, .kind = kind});
    const SavedCheckpoint second = run.save(checkpoints, 2);
    struck = run.disk().struck() > 0;
    INFO("operation " << after << ": " << (second.failure ? second.failure->message() : "none"));
    if (second.failure) {
      ++failures;
      CHECK(kind != DiskFault::Kind::Short);
      CHECK(second.failure->code() == Errc::UsageFile);
      CHECK_THAT(second.failure->message(),  // and not what lies beside its place
                 ContainsSubstring("step-000000002.ckpt'"));
    }
    const CheckpointSearch search = found_in(run.folder());
    CHECK(search.broken.empty());
    REQUIRE(search.newest);
    const bool is_there = search.newest->step == 2;
    CHECK(is_there == (!second.failure ||
                       second.failure->message().find("is in its place") != std::string::npos));
    in_place += second.failure && is_there ? 1 : 0;
    if (!struck) {
      break;  // it waits for an operation of the next save
    }
    run.disk().make_room();
    CHECK_FALSE(run.save(checkpoints, 3).failure);
    CHECK(found_in(run.folder()).newest->step == 3);
    CHECK(run.complaint(first + after).empty());  // what precedes it has the test before
  }
  CHECK((failures > 10) == (kind != DiskFault::Kind::Short));
  CHECK(in_place == (kind == DiskFault::Kind::Fail ? 1 : 0));
}

TEST_CASE("CS-5: a folder that a failed try has made outlives the end of the machine, too",
          "[integration][checkpoints]") {
  const auto kind = GENERATE(DiskFault::Kind::Fail, DiskFault::Kind::Full);
  Small small;
  int failures = 0;
  bool struck = true;
  for (std::int64_t operation = 0; struck; ++operation) {
    OnDisk run(small);
    run.disk().strike({.operation = operation, .kind = kind});
    try {
      const CheckpointFolder first(run.folder());
    } catch (const Error& error) {
      ++failures;
      CHECK(error.code() == Errc::UsageFile);
    }
    struck = run.disk().struck() > 0;
    if (!struck) {
      break;  // it waits for an operation of the second try
    }
    INFO("operation " << operation);
    run.disk().make_room();
    CheckpointFolder second(run.folder());
    CHECK_FALSE(run.save(second, 1).failure);
    CHECK(run.complaint().empty());
  }
  CHECK(failures >= 3);
}

TEST_CASE(
    "CS-6: a checkpoint that a failed save has put in its place outlives the end of the "
    "machine once the folder was opened again",
    "[integration][checkpoints]") {
  Small small;
  int in_place = 0;
  bool struck = true;
  for (std::int64_t after = 0; struck; ++after) {
    OnDisk run(small);
    {
      CheckpointFolder first(run.folder());
      CHECK_FALSE(run.save(first, 1).failure);
      run.disk().strike({.operation = run.disk().operations() + after});
      const SavedCheckpoint second = run.save(first, 2);
      struck = run.disk().struck() > 0;
      in_place += second.failure && found_in(run.folder()).newest->step == 2 ? 1 : 0;
    }
    if (!struck) {
      break;  // it waits for an operation of the next opening
    }
    const CheckpointFolder again(run.folder());
    run.expect(found_in(run.folder()).newest->step);
    CHECK(run.complaint(run.disk().operations()).empty());
  }
  CHECK(in_place == 1);
}

TEST_CASE("CK-3: a save that is read back with damage is an error, and is not put in its place",
          "[integration][checkpoints]") {
  const auto kind = GENERATE(DiskFault::Kind::Damage, DiskFault::Kind::Cut);
  Small small;
  int failures = 0;
  bool struck = true;
  for (std::int64_t after = 0; struck; ++after) {
    OnDisk run(small);
    CheckpointFolder checkpoints(run.folder(), 1);
    CHECK_FALSE(run.save(checkpoints, 1).failure);
    run.disk().strike({.operation = run.disk().operations() + after, .kind = kind});
    const SavedCheckpoint second = run.save(checkpoints, 2);
    struck = run.disk().struck() > 0;
    const CheckpointSearch search = found_in(run.folder());
    CHECK(search.broken.empty());
    CHECK(search.newest->step == (second.failure ? 1 : 2));
    if (second.failure) {
      ++failures;
      CHECK(second.failure->code() == Errc::UsageFile);
      CHECK_THAT(second.failure->message(),
                 ContainsSubstring("step-000000002.ckpt") && ContainsSubstring("differently"));
    }
  }
  CHECK(failures >= 3);  // content, checksum, header
}

TEST_CASE("the newest checkpoint is passed over if any read of it fails or finds damage",
          "[integration][checkpoints]") {
  const auto kind = GENERATE(DiskFault::Kind::Damage, DiskFault::Kind::Cut, DiskFault::Kind::Fail);
  Small small;
  OnDisk run(small);
  CheckpointFolder checkpoints(run.folder(), 2);
  CHECK_FALSE(run.save(checkpoints, 1).failure);
  CHECK_FALSE(run.save(checkpoints, 2).failure);
  const std::int64_t before = run.disk().operations();
  CHECK(find_checkpoint(run.folder()).newest->step == 2);
  const std::int64_t reads = run.disk().operations() - before;
  CHECK(reads >= 3);  // content, checksum, header
  for (std::int64_t read = 0; read < reads; ++read) {
    run.disk().strike({.operation = run.disk().operations() + read, .kind = kind});
    const CheckpointSearch search = find_checkpoint(run.folder());
    REQUIRE(search.newest);
    CHECK(search.newest->step == 1);
    REQUIRE(search.broken.size() == 1);
    CHECK_THAT(search.broken[0].message(), ContainsSubstring("step-000000002.ckpt"));
  }
}

TEST_CASE(
    "CK-2: a run that resumes from a disk that fails or finds damage gets the bits, or an error",
    "[integration][checkpoints]") {
  const auto kind = GENERATE(DiskFault::Kind::Damage, DiskFault::Kind::Cut, DiskFault::Kind::Fail);
  Small small({.stages = 1, .statistics = false, .width = 400});  // of more than one chunk
  OnDisk run(small);
  CheckpointFolder checkpoints(run.folder(), 2);
  CHECK_FALSE(run.save(checkpoints, 1).failure);
  CHECK_FALSE(run.save(checkpoints, 2).failure);
  const std::string newest = run.folder() + "/step-000000002.ckpt";
  Trainer& trainer = small.at(2);
  const StateDict saved = trainer.state_dict();
  (void)step_of(trainer, 0).get();
  const Checkpoint other = trainer.checkpoint();
  int passed_over = 0, refused = 0;
  bool struck = true;
  for (std::int64_t after = 0; struck; ++after) {
    INFO("operation " << after);
    trainer.load(other);
    const int before = run.disk().struck();
    run.disk().strike({.operation = run.disk().operations() + after, .kind = kind});
    try {
      const auto from = checkpoints.resume(trainer);
      REQUIRE(from);
      passed_over += *from == newest ? 0 : 1;
      CHECK(trainer.steps() == (*from == newest ? 2 : 1));
      CHECK(same_bits(trainer.state_dict(), saved));
    } catch (const Error& error) {
      ++refused;
      CHECK(error.code() ==
            (kind == DiskFault::Kind::Fail ? Errc::UsageFile : Errc::CheckpointFormat));
      CHECK_THAT(error.message(), ContainsSubstring(newest));
    }
    struck = run.disk().struck() > before;
  }
  CHECK(passed_over >= 3);  // two chunks and the checksum
  CHECK(refused >= 1);
  const DiskOfThread real(Disk::system());  // the last fault waits for an operation
  CHECK(checkpoints.resume(trainer) == newest);
  CHECK(same_bits(trainer.state_dict(), saved));
}

TEST_CASE("a folder that may exist, but cannot be looked at, is refused, not taken for none",
          "[integration][checkpoints]") {
  const TemporaryFolder root;
  const std::string loop = root.path() + "/loop";
  std::filesystem::create_symlink(loop, loop);
  CHECK_THAT(refusal([&] { (void)find_checkpoint(loop); }, Errc::UsageFile),
             ContainsSubstring(loop));
}

}  // namespace
}  // namespace stagecraft::tests
