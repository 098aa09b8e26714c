/// ProfileCache: what was measured before, one file for each key. Used by profile().
///
/// A file is a costs.json that appears whole (base/whole_file.h); its name is the hash of its key,
/// which names the version of the profiler too. A file that cannot be read, or holds something else
/// than it should, is as good as none: what it held is measured anew.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/costs.h"

namespace stagecraft {

class ProfileCache {
 public:
  /// Empty: keeps nothing. Absent: the usual folder, which a user without a home has not.
  explicit ProfileCache(const std::optional<std::string>& folder);

  /// Nothing where the key is not known. A broken file makes a note.
  [[nodiscard]] std::optional<Costs> find(const std::string& key,
                                          const std::function<bool(const Costs&)>& fits);

  /// Errors: UsageFile where the folder or the file cannot be written.
  void keep(const std::string& key, const Costs& costs) const;

  [[nodiscard]] std::vector<std::string> take_notes() { return std::move(notes_); }

 private:
  [[nodiscard]] std::string file_of(const std::string& key) const;

  std::string folder_;
  std::vector<std::string> notes_;
};

}  // namespace stagecraft
