#include "stagecraft/scheduler/render/palette.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/render/task_colors.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr std::array kKinds{
    CellKind::Forward, CellKind::Backward, CellKind::BackwardInput, CellKind::BackwardWeight};

std::string colour(CellKind kind, int stage, ColourScheme scheme = ColourScheme::Light) {
  return task_colour({.kind = kind, .stage = StageId(stage)}, scheme);
}

double brightness(const std::string& hex) {
  const auto part = [&](std::size_t at) { return std::stoi(hex.substr(at, 2), nullptr, 16); };
  return 0.3 * part(1) + 0.59 * part(3) + 0.11 * part(5);
}

TEST_CASE("every stage and kind has a colour of its own", "[scheduler][render]") {
  for (const ColourScheme scheme : {ColourScheme::Light, ColourScheme::Dark}) {
    std::set<std::string> seen;
    for (int stage = 0; stage < kStageColours; ++stage) {
      for (const CellKind kind : kKinds) {
        const std::string hex = colour(kind, stage, scheme);
        CHECK(hex.size() == 7);
        CHECK(seen.insert(hex).second);
      }
    }
  }
}

TEST_CASE("backwards are darker than forwards, weight halves paler", "[scheduler][render]") {
  for (int stage = 0; stage < kStageColours; ++stage) {
    CAPTURE(stage);
    const double forward = brightness(colour(CellKind::Forward, stage));
    const double input = brightness(colour(CellKind::BackwardInput, stage));
    CHECK(brightness(colour(CellKind::Backward, stage)) < input);
    CHECK(input < forward);
    CHECK(forward < brightness(colour(CellKind::BackwardWeight, stage)));
  }
}

TEST_CASE("no stage looks lighter than another", "[scheduler][render]") {
  for (const CellKind kind : kKinds) {
    for (int stage = 1; stage < kStageColours; ++stage) {
      CAPTURE(stage);
      CHECK(brightness(colour(kind, stage)) ==
            Catch::Approx(brightness(colour(kind, 0))).margin(25));
    }
  }
}

TEST_CASE("hues begin again where nobody says how many stages there are", "[scheduler][render]") {
  CHECK(colour(CellKind::Forward, kStageColours + 3) == colour(CellKind::Forward, 3));
  CHECK(colour(CellKind::Forward, -1) == colour(CellKind::Forward, 0));
}

/// Returns the distance of two colors in parts of 255: the largest difference of a channel.
int distance(const std::string& a, const std::string& b) {
  int most = 0;
  for (const std::size_t at : {1, 3, 5}) {
    most = std::max(most,
                    std::abs(std::stoi(a.substr(at, 2), nullptr, 16) -
                             std::stoi(b.substr(at, 2), nullptr, 16)));
  }
  return most;
}

TEST_CASE("stages beyond the easy hues share a ramp, and none repeats", "[scheduler][render]") {
  for (const ColourScheme scheme : {ColourScheme::Light, ColourScheme::Dark}) {
    for (const int stages : {13, 16, 32, 64}) {
      CAPTURE(stages);
      std::set<std::string> seen;
      std::vector<std::string> forwards;
      for (int stage = 0; stage < stages; ++stage) {
        for (const CellKind kind : kKinds) {
          CHECK(seen.insert(task_colour({.kind = kind, .stage = StageId(stage)}, scheme, stages))
                    .second);
        }
        forwards.push_back(
            task_colour({.kind = CellKind::Forward, .stage = StageId(stage)}, scheme, stages));
      }
      for (int stage = 0; stage < stages; ++stage) {
        const auto at = static_cast<std::size_t>(stage);
        if (stage + 1 < stages) {
          CHECK(distance(forwards[at], forwards[at + 1]) >= 5);
        }
        if (stage + stages / 2 < stages) {  // the device has another chunk
          CHECK(distance(forwards[at], forwards[at + static_cast<std::size_t>(stages / 2)]) >= 40);
        }
      }
    }
  }
  CHECK(
      task_colour({.kind = CellKind::Forward, .stage = StageId(60000)}, ColourScheme::Light, 65536)
          .size() == 7);
}

TEST_CASE("colours say stage, kind, chunk or microbatch", "[scheduler][render]") {
  BuildRequest request;
  request.devices = 8;
  request.microbatches = 16;
  request.chunks = 2;
  const Schedule schedule = build_schedule("interleaved", request);
  const auto task = [](CellKind kind, int stage, int microbatch) {
    return Task{.kind = kind, .stage = StageId(stage), .microbatch = Microbatch(microbatch)};
  };
  const Task first = task(CellKind::Forward, 3, 4);
  const Task other_chunk = task(CellKind::Forward, 11, 4);
  const Task other_device = task(CellKind::Forward, 5, 4);
  const Task other_kind = task(CellKind::Backward, 3, 4);
  const Task other_microbatch = task(CellKind::Forward, 3, 9);
  const auto differ = [&](ColourBy by, const Task& other) {
    const TaskColours colours(schedule, schedule.stage_graph(), by);
    return colours.of(first) != colours.of(other);
  };
  for (const ColourBy by : kColourBys) {
    CAPTURE(name(by));
    CHECK(differ(by, other_kind));
    CHECK(differ(by, other_chunk) == (by == ColourBy::Stage || by == ColourBy::Chunk));
    CHECK(differ(by, other_device) == (by == ColourBy::Stage));
    CHECK(differ(by, other_microbatch) == (by == ColourBy::Number));
  }
  const TaskColours colours(schedule, schedule.stage_graph());
  CHECK(colours.chunk(StageId(11)) == 1);
  CHECK(colours.chunk(StageId(99)) == 0);
}

TEST_CASE("a legend names what there is", "[scheduler][render]") {
  BuildRequest request;
  request.devices = 2;
  request.microbatches = 20;
  const auto texts = [&](const char* builder, ColourBy by) {
    std::vector<std::string> names;
    const Schedule schedule = build_schedule(builder, request);
    const TaskColours colours(schedule, schedule.stage_graph(), by);
    for (const LegendEntry& entry : colours.legend()) {
      names.push_back(entry.text);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(texts("1f1b", ColourBy::Kind) == Names{"F forward", "B backward"});
  CHECK(
      texts("zb-h1", ColourBy::Chunk) ==
      Names{
          "chunk 0", "shades, of chunk 0:", "F forward", "I input gradient", "W weight gradient"});
  CHECK(texts("1f1b", ColourBy::Number).front() == "microbatches 0 to 19");
  const Schedule empty(Schedule::Form::Array, {});
  CHECK(TaskColours(empty, empty.stage_graph()).legend().empty());
}

}  // namespace
}  // namespace stagecraft
