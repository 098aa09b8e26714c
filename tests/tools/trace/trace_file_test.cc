/// Tests the promises of a trace file: every nanosecond is read back, the JSON is complete after
/// every step, and a file of another kind is refused with a clear message.

#include "stagecraft/tools/trace/trace_file.h"

#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using tools::read_trace;
using tools::TraceEvent;
using tools::TraceHeader;
using tools::TraceStep;
using tools::TraceWriter;

const TraceHeader kHeader{.ranks = {"0", "1,2"}, .threads_per_worker = 3, .processors = 8};
constexpr std::int64_t kBoot = 123'456'789'012'345;  // clocks start with the machine

/// Rank 0 makes a value at `begin`; rank 1 receives it and answers.
TraceStep step_at(std::int64_t number, std::int64_t begin) {
  const Task forward{CellKind::Forward, StageId(0), Microbatch(7)};
  const Task next{CellKind::Forward, StageId(1), Microbatch(7)};
  const Task weight{CellKind::BackwardWeight, StageId(1), Microbatch(7)};
  const Task update{CellKind::Update, StageId(1), Microbatch(0)};
  TraceStep step{.step = number, .ranks = {{}, {}}};
  step.ranks[0] = {
      {.op = Op::Recv,
       .task = forward,
       .peer = kDriver,
       .edge = EdgeId(0),
       .time = {begin, begin + 2, begin - 1999, 64, 64, 0}},
      {.op = Op::Run, .task = forward, .time = {begin + 2, begin + 5001, 0, 0, 4096, 1}},
      {.op = Op::Send,
       .task = forward,
       .peer = Rank(1),
       .edge = EdgeId(3),
       .part = Microbatch(14),
       .time = {begin + 5001, begin + 5003, 0, 256, 4096, 1}},
      {.op = Op::Vote, .time = {begin + 5003, begin + 8000, 0, 0, 4096, 1}}};
  step.ranks[1] = {
      {.op = Op::Recv,
       .task = next,
       .peer = Rank(0),
       .edge = EdgeId(3),
       .part = Microbatch(14),
       .time = {begin + 1, begin + 5002, begin + 5002, 256, 256, 0}},
      {.op = Op::Run, .task = weight, .time = {begin + 5010, begin + 7000, 0, 0, 256, 0}},
      {.op = Op::Accumulate, .task = weight, .time = {begin + 7000, begin + 7001, 0, 0, 256, 0}},
      {.op = Op::Free, .time = {begin + 7001, begin + 7002, 0, 0, 0, 0}},
      {.op = Op::Finish, .time = {begin + 7002, begin + 7003, 0, 0, 0, 0}},
      {.op = Op::Update, .task = update, .time = {begin + 7003, begin + 7004, 0, 0, 0, 0}}};
  return step;
}

std::string written(const TemporaryFolder& folder) {
  const std::string path = folder.path() + "/trace.json";
  TraceWriter writer(path, kHeader);
  writer.write(step_at(4, kBoot));
  writer.write(step_at(5, kBoot + 10'000));
  writer.close();
  return read_text_file(path);
}

/// Acts as if the disk were full once a file has this many bytes.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, on_signal_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
  void (*on_signal_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

/// Returns the error that reading gives; nothing if it is read.
std::string complaint(const std::string& text) {
  std::istringstream in(text);
  try {
    (void)read_trace(in, "it", [](const TraceHeader&, const TraceStep&) {});
  } catch (const Error& error) {
    CHECK(error.code() == Errc::UsageFile);
    return error.message();
  }
  return "";
}

}  // namespace

TEST_CASE("a trace is read back to the nanosecond", "[tools][trace]") {
  const TemporaryFolder folder;
  std::istringstream in(written(folder));
  std::vector<TraceStep> steps;
  const TraceHeader header = read_trace(
      in, "it", [&](const TraceHeader&, const TraceStep& step) { steps.push_back(step); });
  CHECK(header.ranks == kHeader.ranks);
  CHECK(header.threads_per_worker == 3);
  CHECK(header.processors == 8);
  REQUIRE(steps.size() == 2);
  for (std::size_t s = 0; s < 2; ++s) {
    const TraceStep expected = step_at(static_cast<std::int64_t>(4 + s), s == 0 ? 0 : 10'000);
    CHECK(steps[s].step == expected.step);
    REQUIRE(steps[s].ranks.size() == 2);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      REQUIRE(steps[s].ranks[rank].size() == expected.ranks[rank].size());
      for (std::size_t i = 0; i < expected.ranks[rank].size(); ++i) {
        const TraceEvent& found = steps[s].ranks[rank][i];
        const TraceEvent& event = expected.ranks[rank][i];
        CAPTURE(s, rank, i);
        CHECK((found.op == event.op));
        CHECK((found.task == event.task));
        CHECK(found.time.start == event.time.start);
        CHECK(found.time.end == event.time.end);
        CHECK(found.time.arrived == event.time.arrived);
        CHECK(found.time.bytes == event.time.bytes);
        if (event.op == Op::Send || event.op == Op::Recv) {
          CHECK((found.peer == event.peer));
          CHECK((found.edge == event.edge));
          CHECK((found.part == event.part));
        }
      }
    }
  }
}

TEST_CASE("a sum is a span from its start to the end of the wait for it", "[tools][trace]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/trace.json";
  TraceWriter writer(path, kHeader);
  TraceStep step{.step = 1, .ranks = {{}, {}}};
  step.ranks[1] = {{.op = Op::Start, .group = 3, .time = {1000, 2000, 0, 0, 0, 0}},
                   {.op = Op::Start, .group = 4, .time = {2000, 3000, 0, 0, 0, 0}},
                   {.op = Op::Finish, .group = 3, .time = {7000, 9000, 0, 0, 0, 0}},
                   {.op = Op::Finish, .group = 4, .time = {9000, 9500, 0, 0, 0, 0}}};
  writer.write(step);
  writer.close();
  std::vector<std::string> spans;
  const auto trace = nlohmann::json::parse(read_text_file(path));
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "b" || event["ph"] == "e") {
      CHECK(event["pid"] == 1);
      spans.push_back(fmt::format("{} {} {} {}",
                                  event["ph"].get<std::string>(),
                                  event["name"].get<std::string>(),
                                  event["id"].get<int>(),
                                  event["ts"].get<double>()));
    }
  }
  CHECK(spans == std::vector<std::string>{"b sum of group 3 1 0",
                                          "e sum of group 3 1 8",
                                          "b sum of group 4 2 1",
                                          "e sum of group 4 2 8.5"});
}

TEST_CASE("a trace keeps the schedule of its run", "[tools][trace]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/trace.json";
  TraceHeader header = kHeader;
  header.schedule = "0F0 . 0B0\n.   1F0|\"1B0\\\n";
  TraceWriter writer(path, header);
  writer.write(step_at(1, kBoot));
  writer.close();
  std::istringstream in(read_text_file(path));
  const auto known_by_then = [&](const TraceHeader& read, const TraceStep&) {
    CHECK(read.schedule == header.schedule);
  };
  CHECK(read_trace(in, "it", known_by_then).schedule == header.schedule);
}

TEST_CASE("a trace keeps the costs that its run was predicted with", "[tools][trace][costs]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/trace.json";
  TraceHeader header = kHeader;
  header.planned_with = tools::PlannedWith{.file = "'a \"b\"\\\n\xff.json'", .costs = {}};
  Costs& costs = header.planned_with->costs;
  costs.stages.each = {{.forward = 0.1, .backward = 0.7}, {.forward = 1.0 / 3}};
  costs.links.each[{0, 1}].latency = 6.445031340263085e-05;
  TraceWriter writer(path, header);
  writer.write(step_at(1, kBoot));
  writer.close();
  std::istringstream in(read_text_file(path));
  int steps = 0;
  const TraceHeader read =
      read_trace(in, "it", [&](const TraceHeader&, const TraceStep&) { ++steps; });
  CHECK(steps == 1);
  REQUIRE(read.planned_with);
  CHECK(read.planned_with->costs == costs);
  CHECK_THAT(read.planned_with->file, ContainsSubstring("'a \"b\"\\\n"));
}

TEST_CASE("a trace is complete JSON behind every step (TF-2)", "[tools][trace]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/trace.json";
  const auto events = [&] {
    return nlohmann::json::parse(read_text_file(path)).at("traceEvents").size();
  };
  TraceWriter writer(path, kHeader);
  writer.write(step_at(1, kBoot));
  const std::size_t first = events();
  writer.write(step_at(2, kBoot + 10'000));
  const std::size_t second = events();
  CHECK(second > first);
  writer.close();
  CHECK(events() == second);
}

TEST_CASE("a trace that outgrows its disk keeps what it had, as complete JSON (TF-2)",
          "[tools][trace]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/trace.json";
  TraceWriter writer(path, kHeader);
  writer.write(step_at(1, kBoot));
  const std::string one_step = read_text_file(path);
  {
    const rlim_t room = GENERATE(0, 1, 5, 300);
    CAPTURE(room);
    const FileLimit limit(one_step.size() + room);
    writer.write(step_at(2, kBoot + 10'000));
  }
  CHECK(read_text_file(path) == one_step);
  writer.write(step_at(3, kBoot + 20'000));  // a trace has no gaps
  CHECK_THROWS_WITH(writer.close(),
                    ContainsSubstring(path) && ContainsSubstring(std::strerror(EFBIG)));
  CHECK(read_text_file(path) == one_step);
  CHECK(complaint(one_step).empty());
}

TEST_CASE("a trace that is cut off anywhere is refused", "[tools][trace]") {
  const TemporaryFolder folder;
  const std::string whole = written(folder);
  REQUIRE(complaint(whole).empty());
  for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
    CAPTURE(size);
    REQUIRE_THAT(complaint(whole.substr(0, size)), ContainsSubstring("cut off after"));
  }
}

TEST_CASE("time to read a trace grows with its length, not with the square",
          "[tools][trace][hostile]") {
  std::string many = "[{}";
  for (int i = 1; i < 60'000; ++i) {
    many += ",{}";
  }
  many += "]";
  const std::string head = R"({"otherData":{"stagecraft_trace":1)";
  const std::clock_t begin = std::clock();
  CHECK(complaint(head + R"(},"others":)" + many + "}").empty());
  CHECK(complaint(head + R"(,"others":)" + many + "}}").empty());
  CHECK_THAT(complaint(head + R"(},"traceEvents":)" + many + "}"), ContainsSubstring("event 1"));
  CHECK_THAT(complaint(many), ContainsSubstring("not a trace of"));
  CHECK((std::clock() - begin) / CLOCKS_PER_SEC < 5);  // 23 each if the time is quadratic
}

TEST_CASE("what is no trace of ours is refused, and why is said", "[tools][trace]") {
  CHECK_THAT(complaint("once upon a time"), ContainsSubstring("byte 1 is no JSON"));
  for (const char* other : {"{}", "[]", "3", R"({"traceEvents":[{"ph":"X","name":"x"}]})"}) {
    CHECK_THAT(complaint(other), ContainsSubstring("not a trace of stagecraft train --trace"));
  }
  const std::string head = R"({"otherData":{"stagecraft_trace":)";
  CHECK_THAT(complaint(head + "2}}"), ContainsSubstring("of version 2, this program reads 1"));
  CHECK_THAT(complaint(head + R"(1,"processors":"many"}})"), ContainsSubstring("header"));
  CHECK_THAT(complaint(head + R"(1,"planned_with":{"file":"c.json"}}})"),
             ContainsSubstring("header"));
  CHECK_THAT(complaint(head + R"(1,"planned_with":{"file":"c.json","costs":{"version":9}}}})"),
             ContainsSubstring("the costs in its header are invalid"));
  const std::string events = head +
                             R"(1},"traceEvents":[{"ph":"M","name":"process_name","pid":0,)" +
                             R"("args":{"name":"rank 0","stages":"0"}},)";
  CHECK(complaint(events + R"({"ph":"C"}]})").empty());
  CHECK_THAT(complaint(events + R"({"name":"x"}]})"), ContainsSubstring("event 2"));
  CHECK_THAT(complaint(events + R"({"ph":"X","cat":"vote","args":{}}]})"),
             ContainsSubstring("event 2"));
  const std::string vote = R"({"ph":"X","cat":"vote","ts":1,"dur":1,"args":{"step":1},"pid":)";
  CHECK(complaint(events + vote + "0}]}").empty());
  CHECK_THAT(complaint(events + vote + "1}]}"), ContainsSubstring("is of rank 1"));
  CHECK_THAT(complaint(events + vote + "-1}]}"), ContainsSubstring("is of rank -1"));
  CHECK_THAT(complaint(events + vote + "9999999999}]}"),
             ContainsSubstring("is of rank 9999999999"));
  CHECK_THAT(complaint(events + vote + "\"x\"}]}"), ContainsSubstring("event 2"));
}

TEST_CASE("a trace that cannot be written is an error at once, and on a full disk at the end",
          "[tools][trace]") {
  CHECK_THROWS_WITH(TraceWriter("/nowhere/trace.json", kHeader),
                    ContainsSubstring("'/nowhere/trace.json'"));
  TraceWriter full("/dev/full", kHeader);
  full.write(step_at(1, kBoot));
  CHECK_THROWS_WITH(full.close(), ContainsSubstring(std::strerror(ENOSPC)));
}

}  // namespace stagecraft::tests
