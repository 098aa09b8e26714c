/// Tests what is left of a folder of checkpoints when the machine ends at any instant, and when any
/// operation of the disk fails.

#include <filesystem>
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

/// OnDisk saves a small state, under any number of steps, to a folder of a simulated disk.
class OnDisk {
 public:
  explicit OnDisk(SimulatedDisk::Lie lie = SimulatedDisk::Lie::None)
      : disk_(std::make_shared<SimulatedDisk>(root_.path(), lie)), scope_(disk_) {}

  [[nodiscard]] SimulatedDisk& disk() const { return *disk_; }
  [[nodiscard]] std::string folder() const { return root_.path() + "/" + kFolder; }
  /// The folder's path, and that of the file of a step, as Remains have them.
  static constexpr const char* kFolder = "runs/first";

  /// Requires: `folder` is a folder of checkpoints here. Returns the outcome.
  SavedCheckpoint save(CheckpointFolder& checkpoints, std::int64_t step) {
    state_.step = step;
    trainer_.load(state_);
    REQUIRE_FALSE(checkpoints.save(trainer_));
    const auto saved = checkpoints.wait();
    REQUIRE(saved);
    CHECK(saved->step == step);
    if (!saved->failure) {
      said_.emplace_back(disk_->operations(), step);
    }
    return *saved;
  }

  /// Returns the newest step that was said to be saved after so many operations.
  [[nodiscard]] std::int64_t said_after(std::int64_t operations) const {
    std::int64_t newest = 0;
    for (const auto& [count, step] : said_) {
      newest = count <= operations ? std::max(newest, step) : newest;
    }
    return newest;
  }

  [[nodiscard]] Trainer& trainer() { return trainer_; }

  /// Ends the machine after each number of operations. Returns what is not as promised then, each
  /// complaint once.
  std::set<std::string> ends() {
    std::set<std::string> complaints;
    for (std::int64_t count = 0; count <= disk_->operations(); ++count) {
      for (const Remains& remains : disk_->remains_after(count)) {
        ++ends_;
        lay_out(remains, after_.path());
        if (auto complaint = complaint_about(said_after(count)); !complaint.empty()) {
          complaints.insert(std::move(complaint));
        }
      }
    }
    return complaints;
  }
  /// Counts the ends of which ends() has made one.
  [[nodiscard]] int count_of_ends() const { return ends_; }

 private:
  /// Returns what is wrong with the files that were left; "" if nothing is.
  [[nodiscard]] std::string complaint_about(std::int64_t said) const {
    const DiskOfThread real(Disk::system());
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

  const TemporaryFolder root_, after_;
  const std::shared_ptr<SimulatedDisk> disk_;
  const DiskOfThread scope_;
  Program program_ = make_program({.stages = 1, .statistics = false});
  Trainer trainer_{Cluster::local(1), program_, make_schedule("1f1b", program_), Sgd{}, {.seed = 9}};
  Checkpoint state_ = trainer_.checkpoint();
  std::vector<std::pair<std::int64_t, std::int64_t>> said_;  ///< after operations: the step
  int ends_ = 0;
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

TEST_CASE("CK-1: a checkpoint that was said to be saved outlives the end of the machine, at any "
          "instant",
          "[integration][checkpoints]") {
  const int keep = GENERATE(1, 2);
  OnDisk run;
  save_a_few(run, keep);
  CHECK(run.ends().empty());
  CHECK(run.count_of_ends() > 1000);
}

TEST_CASE("CK-1: a disk that does not synchronize loses checkpoints, so the test sees it",
          "[integration][checkpoints]") {
  OnDisk files(SimulatedDisk::Lie::OfFiles);
  save_a_few(files, 1);
  CHECK(files.ends().contains("a file is broken that has its name"));
  OnDisk folders(SimulatedDisk::Lie::OfFolders);
  save_a_few(folders, 1);
  CHECK(folders.ends().contains("a checkpoint is lost that was said to be saved"));
}

TEST_CASE("CS-3: any operation of the disk fails once, or the disk is full from it on",
          "[integration][checkpoints]") {
  const auto kind =
      GENERATE(DiskFault::Kind::Fail, DiskFault::Kind::Full, DiskFault::Kind::Short);
  int failures = 0;
  bool struck = true;
  for (std::int64_t after = 0; struck; ++after) {
    OnDisk run;
    CheckpointFolder checkpoints(run.folder(), 1);
    CHECK_FALSE(run.save(checkpoints, 1).failure);
    run.disk().strike({.operation = run.disk().operations() + after, .kind = kind});
    const SavedCheckpoint second = run.save(checkpoints, 2);
    struck = run.disk().struck() > 0;
    INFO("operation " << after << ": " << (second.failure ? second.failure->message() : "none"));
    if (second.failure) {
      ++failures;
      CHECK(kind != DiskFault::Kind::Short);
      CHECK(second.failure->code() == Errc::UsageFile);
      CHECK_THAT(second.failure->message(), ContainsSubstring("step-000000002.ckpt"));
    }
    const CheckpointSearch search = find_checkpoint(run.folder());
    CHECK(search.broken.empty());
    REQUIRE(search.newest);
    CHECK(search.newest->step >= run.said_after(run.disk().operations()));
    run.disk().make_room();
    CHECK_FALSE(run.save(checkpoints, 3).failure);
    CHECK(find_checkpoint(run.folder()).newest->step == 3);
    if (after % 10 == 0 || !struck) {  // each has all ends of the saves before
      CHECK(run.ends() == std::set<std::string>{});
    }
  }
  CHECK((failures > 10) == (kind != DiskFault::Kind::Short));
}

}  // namespace
}  // namespace stagecraft::tests
