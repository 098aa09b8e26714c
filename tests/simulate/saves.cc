#include "stagecraft/tests/simulate/saves.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/trainer/state/checkpoint.h"

namespace stagecraft::simulation {
namespace {

std::string name_of_step(std::int64_t step) {
  return fmt::format("step-{:09}.ckpt", step);
}

/// Returns the steps whose files must stand after the save of a step (CS-2).
std::set<std::int64_t> standing_after(const SavedSteps& steps, std::int64_t step, int keep) {
  std::set<std::int64_t> standing = steps.standing;
  standing.insert(steps.in_place.begin(), steps.in_place.end());
  standing.insert(step);
  const auto later = standing.upper_bound(step);
  for (auto n = std::distance(standing.begin(), later); n > keep; --n) {
    standing.erase(standing.begin());
  }
  return standing;
}

bool is_of_the_disk(const Error& error) {
  return error.code() == Errc::UsageFile || error.code() == Errc::CheckpointFormat;
}

bool names(const Error& error, std::string_view text) {
  return std::string_view(error.what()).find(text) != std::string_view::npos;
}

}  // namespace

Saves::Saves(World& world,
             DriverDisk& disk,
             Unbroken& unbroken,
             SavedSteps& steps,
             const std::string& folder,
             int keep)
    : world_(world), disk_(disk), unbroken_(unbroken), steps_(steps), path_(folder), keep_(keep) {
  const World::Time begun = world_.clock().now();
  try {
    open();
  } catch (const Error& error) {
    require(is_disturbed_since(begun),
            fmt::format("a folder cannot be used without a fault of its disk: {}", error.what()));
    const std::filesystem::path root = std::filesystem::path(path_).parent_path().parent_path();
    require(names(error, root.string()),
            fmt::format("a failed disk does not name the folder: {}", error.what()));
    wait_on_strand([this] { return !disk_.is_full(); });  // until it is mended
    throw;
  }
}

Saves::~Saves() {
  const InDestructor scope;
  folder_.reset();
}

/// Keeps SI-9.
void Saves::open() {
  const World::Time begun = world_.clock().now();
  folder_.emplace(path_, keep_);
  const CheckpointSearch search = find_checkpoint(path_);
  const bool is_disturbed = is_disturbed_since(begun);
  require(search.broken.empty() || is_disturbed, "a file is broken that has its name");
  require(
      !steps_.newest || is_disturbed || (search.newest && search.newest->step >= *steps_.newest),
      "a checkpoint is lost that was said to be saved");
  std::set<std::int64_t> found = files();
  const std::set<std::int64_t> kept =
      is_saving() ? standing_after(steps_, steps_.saving->step, keep_) : steps_.standing;
  for (const std::int64_t step : steps_.standing) {
    require(found.contains(step) || !kept.contains(step), "an older checkpoint is lost");
  }
  steps_.standing = std::move(found);
  steps_.in_place.clear();
  steps_.saving.reset();
}

void Saves::begin(tests::Trainer& trainer) {
  const std::int64_t step = trainer.steps();
  const World::Time begun = world_.clock().now();
  world_.tell("driver", fmt::format("saves step {}", step));
  try {
    const std::optional<SavedCheckpoint> before = folder_->save(trainer);
    if (is_saving()) {
      take(before);
    }
  } catch (const Error& error) {
    require(!is_of_the_disk(error), fmt::format("a failed save ends training: {}", error.what()));
    throw;
  }
  steps_.saving = {step, begun};
}

void Saves::settle() {
  if (is_saving()) {
    end(folder_->wait());
  }
}

void Saves::look() {
  if (const auto outcome = is_saving() ? folder_->done() : std::nullopt) {
    end(outcome);
  }
}

std::optional<std::string> Saves::resume(tests::Trainer& trainer) {
  settle();
  const World::Time begun = world_.clock().now();
  try {
    const std::optional<std::string> path = folder_->resume(trainer);
    require(path || !has_any() || is_disturbed_since(begun), "no checkpoint is found");
    if (path) {
      world_.tell("driver", fmt::format("loaded step {}", trainer.steps()));
      require(trainer.steps() >= steps_.newest.value_or(0) || is_disturbed_since(begun),
              "an older checkpoint is loaded than the newest that was said to be saved");
      require(path->ends_with(name_of_step(trainer.steps())), "a file has another step's name");
    }
    return path;
  } catch (const Error& error) {
    require(!is_of_the_disk(error) || is_disturbed_since(begun),
            fmt::format("a checkpoint cannot be loaded: {}", error.what()));
    throw;
  }
}

/// Keeps SI-10, and SI-6 for saves.
void Saves::take(const std::optional<SavedCheckpoint>& outcome) {
  if (!world_.has_driver()) {
    throw ProcessEnded();  // a wait for a thread throws nothing
  }
  require(outcome && outcome->step == steps_.saving->step, "a save has no outcome");
  if (!outcome->failure) {
    world_.tell("driver", fmt::format("has saved step {}", outcome->step));
    steps_.newest = std::max(steps_.newest.value_or(0), outcome->step);
    steps_.standing = standing_after(steps_, outcome->step, keep_);
    steps_.in_place.clear();
  } else {
    const Error& why = *outcome->failure;
    world_.tell(
        "driver",
        fmt::format("has not saved step {}: {}", outcome->step, disk_.shown(why.message())));
    require(is_disturbed_since(steps_.saving->begun),
            fmt::format("a save fails without a fault of the disk: {}", why.what()));
    require(why.code() == Errc::UsageFile && names(why, name_of_step(outcome->step) + "'"),
            fmt::format("a failed save does not name its file: {}", why.what()));
    if (names(why, "is in its place")) {
      steps_.in_place.insert(outcome->step);
    }
  }
}

void Saves::end(const std::optional<SavedCheckpoint>& outcome) {
  take(outcome);
  const World::Time begun = std::exchange(steps_.saving, std::nullopt)->begun;
  const std::set<std::int64_t> found = files();
  require(std::ranges::includes(found, steps_.standing) &&
              std::ranges::includes(found, steps_.in_place),
          "an older checkpoint does not stay");
  if (outcome->failure) {
    return;
  }
  require(std::distance(found.begin(), found.upper_bound(outcome->step)) <= keep_ ||
              is_disturbed_since(begun),
          "more checkpoints are kept than were asked for");
  const DiskOfThread real(Disk::system());  // because this check is no part of the run
  try {
    unbroken_.check_checkpoint(read_checkpoint(outcome->path));
  } catch (const Error& error) {
    throw Violation(fmt::format("a file that was said to be saved is broken: {}", error.what()));
  }
}

std::set<std::int64_t> Saves::files() const {
  std::set<std::int64_t> steps;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".ckpt") {
      steps.insert(std::stoll(name.substr(name.find('-') + 1)));
    }
  }
  return steps;
}

}  // namespace stagecraft::simulation
