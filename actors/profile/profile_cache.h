/// ProfileCache keeps earlier measurements, one file for each key. profile() uses it.
///
/// A file is a costs.json that appears whole (whole_file.h). Its name is the hash of its key,
/// and the key names the version of the profiler too. A file that cannot be read, or that has wrong
/// contents, counts as none: its measurement is repeated.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"

namespace stagecraft {

class ProfileCache {
 public:
  /// Requires: `folder` names the folder. Empty: keeps nothing. Absent: the usual folder; a user
  /// without a home has none.
  explicit ProfileCache(const std::optional<std::string>& folder);

  /// Returns the costs; nothing if the key is not known. A broken file makes a note.
  [[nodiscard]] std::optional<Costs> find(const std::string& key,
                                          const std::function<bool(const Costs&)>& fits);

  /// Writes the costs. Errors: UsageFile if the folder or the file cannot be written.
  void keep(const std::string& key, const Costs& costs) const;

  [[nodiscard]] std::vector<std::string> take_notes() { return std::move(notes_); }

 private:
  [[nodiscard]] std::string file_of(const std::string& key) const;

  std::string folder_;
  std::vector<std::string> notes_;
};

}  // namespace stagecraft
