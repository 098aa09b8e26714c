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

std::string color(CellKind kind, int stage, ColorScheme scheme = ColorScheme::Light) {
  return task_color({.kind = kind, .stage = StageId(stage)}, scheme);
}

double brightness(const std::string& hex) {
  const auto part = [&](std::size_t at) { return std::stoi(hex.substr(at, 2), nullptr, 16); };
  return 0.3 * part(1) + 0.59 * part(3) + 0.11 * part(5);
}

TEST_CASE("every stage and kind has a color of its own", "[scheduler][render]") {
  for (const ColorScheme scheme : {ColorScheme::Light, ColorScheme::Dark}) {
    std::set<std::string> seen;
    for (int stage = 0; stage < kStageColors; ++stage) {
      for (const CellKind kind : kKinds) {
        const std::string hex = color(kind, stage, scheme);
        CHECK(hex.size() == 7);
        CHECK(seen.insert(hex).second);
      }
    }
  }
}

TEST_CASE("backwards are darker than forwards, weight halves paler", "[scheduler][render]") {
  for (int stage = 0; stage < kStageColors; ++stage) {
    CAPTURE(stage);
    const double forward = brightness(color(CellKind::Forward, stage));
    const double input = brightness(color(CellKind::BackwardInput, stage));
    CHECK(brightness(color(CellKind::Backward, stage)) < input);
    CHECK(input < forward);
    CHECK(forward < brightness(color(CellKind::BackwardWeight, stage)));
  }
}

TEST_CASE("no stage looks lighter than another", "[scheduler][render]") {
  for (const CellKind kind : kKinds) {
    for (int stage = 1; stage < kStageColors; ++stage) {
      CAPTURE(stage);
      CHECK(brightness(color(kind, stage)) == Catch::Approx(brightness(color(kind, 0))).margin(25));
    }
  }
}

TEST_CASE("hues begin again where nobody says how many stages there are", "[scheduler][render]") {
  CHECK(color(CellKind::Forward, kStageColors + 3) == color(CellKind::Forward, 3));
  CHECK(color(CellKind::Forward, -1) == color(CellKind::Forward, 0));
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
  for (const ColorScheme scheme : {ColorScheme::Light, ColorScheme::Dark}) {
    for (const int stages : {13, 16, 32, 64}) {
      CAPTURE(stages);
      std::set<std::string> seen;
      std::vector<std::string> forwards;
      for (int stage = 0; stage < stages; ++stage) {
        for (const CellKind kind : kKinds) {
          CHECK(seen.insert(task_color({.kind = kind, .stage = StageId(stage)}, scheme, stages))
                    .second);
        }
        forwards.push_back(
            task_color({.kind = CellKind::Forward, .stage = StageId(stage)}, scheme, stages));
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
  CHECK(task_color({.kind = CellKind::Forward, .stage = StageId(60000)}, ColorScheme::Light, 65536)
            .size() == 7);
}

TEST_CASE("chunks shade the hue of a kind from strong to pale", "[scheduler][render]") {
  for (const CellKind kind : kKinds) {
    std::set<std::string> seen;
    for (int chunk = 0; chunk < 4; ++chunk) {
      const std::string hex = kind_color(kind, ColorScheme::Light, chunk, 4);
      CHECK(seen.insert(hex).second);
      if (chunk > 0) {
        CHECK(brightness(hex) > brightness(kind_color(kind, ColorScheme::Light, chunk - 1, 4)));
      }
    }
  }
  CHECK(kind_color(CellKind::Update, ColorScheme::Light, 0, 2) ==
        kind_color(CellKind::Update, ColorScheme::Light, 1, 2));
}

TEST_CASE("schedules of one picture share colors", "[scheduler][render]") {
  const Schedule chain = build_schedule("1f1b", {.devices = 4, .microbatches = 4});
  const Schedule wave = build_schedule("zb-v", {.devices = 4, .microbatches = 4});
  const StageGraph four = chain.stage_graph();
  const StageGraph eight = wave.stage_graph();
  const std::vector<Panel> panels{{.schedule = &chain, .graph = &four},
                                  {.schedule = &wave, .graph = &eight}};
  const TaskColors colors(panels, ColorBy::Kind);
  const Task task{.kind = CellKind::Forward, .stage = StageId(2)};
  CHECK(colors.count() == 2);
  CHECK(colors.of(task, ColorScheme::Light, 0) == colors.of(task, ColorScheme::Light, 1));
  CHECK(colors.legend().size() == 5);  // F, B, I, W and the shades
}

TEST_CASE("colors say stage, kind, chunk or microbatch", "[scheduler][render]") {
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
  const auto differ = [&](ColorBy by, const Task& other) {
    const TaskColors colors(schedule, schedule.stage_graph(), by);
    return colors.of(first) != colors.of(other);
  };
  for (const ColorBy by : kColorBys) {
    CAPTURE(name(by));
    CHECK(differ(by, other_kind));
    CHECK(differ(by, other_chunk) == (by != ColorBy::Number));  // the shade of a kind
    CHECK(differ(by, other_device) == (by == ColorBy::Stage));
    CHECK(differ(by, other_microbatch) == (by == ColorBy::Number));
  }
  const TaskColors colors(schedule, schedule.stage_graph());
  CHECK(colors.chunk(StageId(11)) == 1);
  CHECK(colors.chunk(StageId(99)) == 0);
}

TEST_CASE("a legend names what there is", "[scheduler][render]") {
  BuildRequest request;
  request.devices = 2;
  request.microbatches = 20;
  const auto texts = [&](const char* builder, ColorBy by) {
    std::vector<std::string> names;
    const Schedule schedule = build_schedule(builder, request);
    const TaskColors colors(schedule, schedule.stage_graph(), by);
    for (const LegendEntry& entry : colors.legend()) {
      names.push_back(entry.text);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(texts("1f1b", ColorBy::Kind) == Names{"F forward", "B backward"});
  CHECK(texts("zb-v", ColorBy::Kind) == Names{"F forward",
                                              "I input gradient",
                                              "W weight gradient",
                                              "shades: chunk 0 strong, to chunk 1 pale"});
  CHECK(
      texts("zb-h1", ColorBy::Chunk) ==
      Names{
          "chunk 0", "shades, of chunk 0:", "F forward", "I input gradient", "W weight gradient"});
  CHECK(texts("1f1b", ColorBy::Number).front() == "microbatches 0 to 19");
  const Schedule empty(Schedule::Form::Array, {});
  CHECK(TaskColors(empty, empty.stage_graph()).legend().empty());
}

}  // namespace
}  // namespace stagecraft
