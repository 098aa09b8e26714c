/// Saves are the checkpoints of a driver: the library's folder of them, on the disk of the driver's
/// machine. SavedSteps is what drivers were told of it, one after the other.
///
/// The functions throw a Violation where SI-1, SI-6, SI-9 or SI-10 (run.h) is broken. A driver uses
/// them on its strand.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "stagecraft/actors/trainer/checkpoint_folder.h"
#include "stagecraft/tests/simulate/driver_disk.h"
#include "stagecraft/tests/simulate/unbroken.h"

namespace stagecraft::simulation {

struct SavedSteps {
  struct Saving {
    std::int64_t step;
    World::Time begun;
  };
  std::optional<std::int64_t> newest;  ///< that was said to be saved
  std::set<std::int64_t> standing;     ///< the folder must have files of these
  /// Files that may not outlive the end of the machine before another save succeeds.
  std::set<std::int64_t> in_place;
  /// The save in progress, also that of a driver that has ended meanwhile: it may be done.
  std::optional<Saving> saving;
};

class Saves {
 public:
  /// Opens the folder, and keeps the `keep` newest files. Checks that it has what `steps` says.
  /// Errors: those of CheckpointFolder, after its disk has room again.
  Saves(World& world,
        DriverDisk& disk,
        Unbroken& unbroken,
        SavedSteps& steps,
        const std::string& folder,
        int keep);
  /// The driver may have been killed, so waits throw nothing.
  ~Saves();
  Saves(const Saves&) = delete;
  Saves& operator=(const Saves&) = delete;

  [[nodiscard]] bool has_any() const { return !steps_.standing.empty(); }
  /// Returns the newest step that has a file.
  [[nodiscard]] std::optional<std::int64_t> newest() const {
    return has_any() ? std::optional(*steps_.standing.rbegin()) : std::nullopt;
  }
  [[nodiscard]] bool is_saving() const { return steps_.saving.has_value(); }

  /// Begins a save, after the one before. Errors: those of a rank.
  void begin(tests::Trainer& trainer);
  /// Waits for the save in progress, and checks its outcome.
  void settle();
  /// Checks its outcome if there is one now.
  void look();

  /// Loads the newest checkpoint. Returns its path; nothing if there is none, or if the disk has
  /// failed. Errors: those of a rank; those of a disk that fails, which leave weights undefined.
  std::optional<std::string> resume(tests::Trainer& trainer);

 private:
  void open();
  /// Notes the outcome of the save that is or was in progress.
  void take(const std::optional<SavedCheckpoint>& outcome);
  /// Does so while no other save is in progress, and checks the files.
  void end(const std::optional<SavedCheckpoint>& outcome);
  [[nodiscard]] std::set<std::int64_t> files() const;
  [[nodiscard]] bool is_disturbed_since(World::Time when) const {
    return disk_.disturbed_until() >= when;
  }

  World& world_;
  DriverDisk& disk_;
  Unbroken& unbroken_;
  SavedSteps& steps_;
  const std::string path_;
  const int keep_;
  std::optional<CheckpointFolder> folder_;
};

}  // namespace stagecraft::simulation
