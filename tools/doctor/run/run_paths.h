/// RunPaths finds the files of a run that its record names by paths of the time of its start, also
/// if the folder of the run has been moved or copied since: those inside it are inside it still.
#pragma once

#include <filesystem>
#include <string>

namespace stagecraft::tools {

class RunPaths {
 public:
  /// `folder`: where the folder of the run is now. `before`: where it was at the start, an absolute
  /// path; empty: as now. `directory`: from which the run started.
  RunPaths(const std::string& folder, const std::string& before, const std::string& directory);

  /// Returns where the folder was at the start; empty if it has not moved.
  [[nodiscard]] const std::string& before() const { return before_; }

  /// Returns where a file is now. `path`: as the record has it; empty: none.
  [[nodiscard]] std::string now(const std::string& path) const;

 private:
  const std::filesystem::path here_, directory_;
  std::string before_;
};

}  // namespace stagecraft::tools
