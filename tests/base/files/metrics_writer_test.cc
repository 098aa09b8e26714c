#include "stagecraft/base/files/metrics_writer.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/base/files/event_reader.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using tests::read_text_file;
using tests::TemporaryFolder;

std::set<std::string> event_files(const std::string& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      files.insert(entry.path().string());
    }
  }
  return files;
}

}  // namespace

TEST_CASE("the values of steps are in the table and in the events", "[base][metrics]") {
  const TemporaryFolder folder;
  const std::string place = folder.path() + "/runs/a";
  MetricsWriter metrics(place, {"loss", "accuracy"});
  metrics.write(1, {{"loss", 0.5}});
  metrics.write(300, {{"accuracy", 0.25}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  // The rows must be there before the writer is destroyed (MW-1).
  CHECK(read_text_file(place + "/metrics.csv") == "step,loss,accuracy\n1,0.5,\n300,nan,0.25\n");
  REQUIRE(event_files(place).size() == 1);
  const std::vector<ReadEvent> events = events_in(read_text_file(*event_files(place).begin()));
  REQUIRE(events.size() == 4);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[1].session_status == 1);
  CHECK(events[1].step == 1);
  CHECK(events[2].scalars == std::map<std::string, float>{{"loss", 0.5F}});
  CHECK(events[3].step == 300);
  CHECK(events[3].scalars.at("accuracy") == 0.25F);
  CHECK(std::isnan(events[3].scalars.at("loss")));
  CHECK(events[3].wall_time > 1.6e9);
}

TEST_CASE("a continued run drops the rows of steps that it repeats (MW-2)", "[base][metrics]") {
  const TemporaryFolder folder;
  {
    MetricsWriter first(folder.path(), {"loss"});
    for (int step = 1; step <= 3; ++step) {
      first.write(step, {{"loss", step}});
    }
  }
  const std::string table = folder.path() + "/metrics.csv";
  // A killed process leaves the table like this: the last row has no end.
  folder.write("metrics.csv", read_text_file(table) + "4,4.");
  const std::set<std::string> before = event_files(folder.path());
  MetricsWriter second(folder.path(), {"loss", "eval_loss"}, 2);
  second.write(3, {{"loss", 30.0}, {"eval_loss", 7.0}});
  CHECK(read_text_file(table) == "step,loss,eval_loss\n1,1,\n2,2,\n3,30,7\n");
  std::set<std::string> added = event_files(folder.path());
  for (const std::string& file : before) {
    added.erase(file);
  }
  REQUIRE(added.size() == 1);
  const std::vector<ReadEvent> events = events_in(read_text_file(*added.begin()));
  REQUIRE(events.size() == 3);
  CHECK(events[1].session_status == 1);  // makes TensorBoard drop the other file's step 3
  CHECK(events[1].step == 3);
}

TEST_CASE("a folder that cannot hold metrics is refused", "[base][metrics]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& place, const std::vector<std::string>& columns) {
    return refusal([&] { const MetricsWriter metrics(place, columns); },
                   columns.empty() ? Errc::UsageFile : Errc::UsageArgument);
  };
  CHECK_THAT(refused(folder.write("file", ""), {}), ContainsSubstring("cannot be written"));
  folder.write("metrics.csv", "name,value\nx,1\n");
  CHECK_THAT(refused(folder.path(), {}), ContainsSubstring("found 'name,value'"));
  CHECK(read_text_file(folder.path() + "/metrics.csv") == "name,value\nx,1\n");
  const std::string fresh = folder.path() + "/fresh";
  CHECK_THAT(refused(fresh, {"a,b"}), ContainsSubstring("'a,b'"));
  CHECK_THAT(refused(fresh, {"a", "a"}), ContainsSubstring("'a'"));
  CHECK_THAT(refused(fresh, {"step"}), ContainsSubstring("'step'"));
  MetricsWriter metrics(fresh, {"loss"});
  CHECK_THAT(refusal(
                 [&] {
                   metrics.write(1, {{"lose", 1.0}});
                 },
                 Errc::UsageArgument),
             ContainsSubstring("expected one of the columns loss, found 'lose'"));
  CHECK(read_text_file(fresh + "/metrics.csv") == "step,loss\n");
}

}  // namespace stagecraft
