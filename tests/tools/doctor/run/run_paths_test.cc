#include "stagecraft/tools/doctor/run/run_paths.h"

#include <filesystem>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

using tools::RunPaths;

TEST_CASE("files of a folder that was moved are where it is now, others where they were",
          "[tools][doctor]") {
  const RunPaths paths("/new/b", "/old/runs/a", "/old");
  CHECK(paths.before() == "/old/runs/a");
  CHECK(paths.now("/old/runs/a/logs/rank-0.log") == "/new/b/logs/rank-0.log");
  CHECK(paths.now("runs/a/logs/../metrics") == "/new/b/metrics");
  CHECK(paths.now("runs/a") == "/new/b");
  CHECK(paths.now("runs/ab/metrics") == "/old/runs/ab/metrics");
  CHECK(paths.now("kept") == "/old/kept");
  CHECK(paths.now("/elsewhere/kept") == "/elsewhere/kept");
  CHECK(paths.now("").empty());
  CHECK(RunPaths("/new/b", "/old/a/", "/").now("/old/a/metrics") == "/new/b/metrics");
}

TEST_CASE("a folder by another name is not moved, nor one of an old record", "[tools][doctor]") {
  const TemporaryFolder folder;
  const std::string link = folder.path() + "-link";
  std::filesystem::create_directory_symlink(folder.path(), link);
  const RunPaths same(link, folder.path(), "/old");
  std::filesystem::remove(link);
  CHECK(same.before().empty());
  CHECK(same.now(folder.path() + "/metrics") == folder.path() + "/metrics");
  const RunPaths old("/new/b", "", "/old");
  CHECK(old.before().empty());
  CHECK(old.now("a/metrics") == "/old/a/metrics");
}

}  // namespace
}  // namespace stagecraft::tests
