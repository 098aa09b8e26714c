/// BestCheckpoint is the file of Validation::best_path during a call of fit().
///
/// A ValidationWatch has one, on the thread of fit().
#pragma once

#include <string>

#include "stagecraft/actors/trainer/state/loop_state.h"

namespace stagecraft {

class Trainer;

class BestCheckpoint {
 public:
  /// `path`: empty for none.
  explicit BestCheckpoint(std::string path);

  /// Saves the trainer's state, if there is a path. Errors: those of Trainer::save.
  void save(Trainer& trainer);

  /// Returns the path if the file there holds the best state that evaluations have shown; else "".
  /// A run that continues and finds no better one has not written it.
  [[nodiscard]] std::string path_if_of(const WatchState& watch) const;

 private:
  const std::string path_;
  bool has_saved_ = false;
};

}  // namespace stagecraft
