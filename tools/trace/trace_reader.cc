#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/tools/trace/trace_file.h"
#include "stagecraft/tools/trace/trace_words.h"

namespace stagecraft::tools {
namespace {

using Json = nlohmann::json;

// The number of open lists around values: {"otherData":{},"traceEvents":[{},{}]}.
constexpr std::size_t kMemberDepth = 1;
constexpr std::size_t kEventDepth = 2;

/// Builds one value from a parser's events.
class ValueBuilder {
 public:
  [[nodiscard]] bool is_open() const { return !open_.empty(); }
  void begin(Json list) { open_.push_back(&put(std::move(list))); }
  void end() { open_.pop_back(); }
  void name(std::string key) { key_ = std::move(key); }
  Json& put(Json value) {
    if (open_.empty()) {
      return value_ = std::move(value);
    }
    Json& list = *open_.back();
    if (list.is_object()) {
      return list[key_] = std::move(value);
    }
    list.push_back(std::move(value));
    return list.back();
  }
  [[nodiscard]] const Json& value() const { return value_; }

 private:
  Json value_;
  std::vector<Json*> open_;
  std::string key_;
};

std::int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000.0);
}

/// Returns that of a Run for any other name.
Category category_of(const std::string& name) {
  const auto known = std::ranges::find(kCategories, name, &Category::name);
  return known == kCategories.end() ? Category{Op::Run, ""} : *known;
}

/// Builds the steps from events that come one by one. Keeps one step at a time, and ignores what it
/// does not know.
class Reader : public nlohmann::json_sax<Json> {
 public:
  Reader(std::string_view name,
         const std::function<void(const TraceHeader&, const TraceStep&)>& step)
      : name_(name), on_step_(step) {}

  TraceHeader read(std::istream& in) {
    try {
      if (!Json::sax_parse(in, this)) {
        refuse(in);
      }
    } catch (const Json::exception& error) {
      fail(fmt::format("its header is not one that stagecraft train writes ({})", error.what()));
    }
    if (!ours_) {
      fail("it is not a trace of stagecraft train --trace; name the file that it wrote");
    }
    end_step();
    return std::move(header_);
  }

  bool null() override { return see(nullptr); }
  bool boolean(bool value) override { return see(value); }
  bool number_integer(std::int64_t value) override { return see(value); }
  bool number_unsigned(std::uint64_t value) override { return see(value); }
  bool number_float(double value, const std::string&) override { return see(value); }
  bool string(std::string& value) override { return see(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override { return see_begin(Json::object()); }
  bool start_array(std::size_t) override { return see_begin(Json::array()); }
  bool end_object() override { return see_end(); }
  bool end_array() override { return see_end(); }
  bool key(std::string& name) override {
    if (depth_ == kMemberDepth) {
      member_ = name;
    } else {
      value_.name(name);
    }
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const Json::exception&) override {
    broken_at_ = at;
    return false;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(Errc::UsageFile, fmt::format("the trace '{}' cannot be read: {}", name_, why));
  }

  /// The input ended inside a value, or it is no JSON.
  [[noreturn]] void refuse(std::istream& in) const {
    in.clear();
    if (in.peek() == std::istream::traits_type::eof()) {
      fail(fmt::format(
          "it was cut off after {} bytes, in the middle of a step or while it was copied; copy it "
          "again, or trace again",
          broken_at_));
    }
    fail(fmt::format("byte {} is no JSON", broken_at_));
  }

  bool see(Json value) {
    if (value_.is_open()) {
      value_.put(std::move(value));
    }
    return true;
  }

  bool see_begin(Json list) {
    const bool wanted = list.is_object() && ((depth_ == kMemberDepth && member_ == "otherData") ||
                                             (depth_ == kEventDepth && member_ == "traceEvents"));
    if (value_.is_open() || wanted) {
      value_.begin(std::move(list));
    }
    ++depth_;
    return true;
  }

  bool see_end() {
    --depth_;
    if (value_.is_open()) {
      value_.end();
      if (!value_.is_open()) {
        depth_ == kMemberDepth ? see_header(value_.value()) : see_event(value_.value());
      }
    }
    return true;
  }

  void see_header(const Json& header) {
    const auto version = header.find(kTraceVersionKey);
    if (version == header.end()) {
      return;
    }
    if (*version != kTraceVersion) {
      fail(fmt::format(
          "it is of version {}, this program reads {}", version->dump(), kTraceVersion));
    }
    ours_ = true;
    header_.threads_per_worker = header.value("threads_per_worker", 1);
    header_.processors = header.value("processors", 1);
    header_.schedule = header.value(kScheduleKey, "");
    if (const auto plan = header.find(kPlannedWithKey); plan != header.end()) {
      header_.planned_with = plan_of(*plan);
    }
  }

  [[nodiscard]] PlannedWith plan_of(const Json& plan) const {
    try {
      return {plan.at("file"), parse_costs(plan.at("costs").dump()).costs};
    } catch (const Error& error) {
      fail(fmt::format("the costs in its header are invalid: {}", error.message()));
    }
  }

  void see_event(const Json& event) {
    if (!ours_) {
      return;
    }
    ++events_;
    try {
      const std::string& kind = event.at("ph").get_ref<const std::string&>();
      if (kind == "X") {
        add(event);
      } else if (kind == "M" && event.at("name") == "process_name") {
        header_.ranks.push_back(event.at("args").at("stages"));
      }
    } catch (const Json::exception& error) {
      fail(fmt::format(
          "event {} is not one that stagecraft train writes ({})", events_, error.what()));
    }
  }

  void add(const Json& event) {
    const Json& args = event.at("args");
    const auto step = args.at("step").get<std::int64_t>();
    if (!inside_ || step_.step != step) {
      end_step();
      step_.step = step;
      step_.ranks.resize(header_.ranks.size());
      inside_ = true;
    }
    const auto rank = event.at("pid").get<std::size_t>();
    if (rank >= step_.ranks.size()) {
      fail(fmt::format("event {} is of rank {}, but {} ranks are named before it",
                       events_,
                       event.at("pid").dump(),
                       header_.ranks.size()));
    }
    step_.ranks[rank].push_back(event_of(event, args));
  }

  [[nodiscard]] TraceEvent event_of(const Json& event, const Json& args) const {
    TraceEvent out;
    const Category category = category_of(event.at("cat"));
    out.op = category.op;
    out.together = category.together;
    out.time.start = nanoseconds(event.at("ts"));
    out.time.end = out.time.start + nanoseconds(event.at("dur"));
    if (const auto kind = args.find("kind"); kind != args.end()) {
      const auto& letters = kind->get_ref<const std::string&>();
      out.task = {formats::kind_of(letters.empty() ? '?' : letters[0]).value_or(CellKind::Idle),
                  StageId(args.at("stage").get<int>()),
                  Microbatch(args.at("microbatch").get<int>())};
    }
    if (out.op == Op::Send || out.op == Op::Recv) {
      out.peer = Rank(args.at("peer").get<int>());
      out.edge = EdgeId(args.at("edge").get<int>());
      out.part = Microbatch(args.value("part", out.task.microbatch.value));  // not in old traces
      out.time.bytes = args.at("bytes");
    }
    if (out.op == Op::Recv) {
      out.time.arrived = nanoseconds(args.at("arrived"));
    }
    return out;
  }

  void end_step() {
    if (inside_) {
      on_step_(header_, step_);
      step_.ranks.clear();
      inside_ = false;
    }
  }

  const std::string name_;
  const std::function<void(const TraceHeader&, const TraceStep&)>& on_step_;
  std::string member_;     ///< of the outermost object
  std::size_t depth_ = 0;  ///< number of open lists
  ValueBuilder value_;
  std::size_t broken_at_ = 0;
  bool ours_ = false;
  TraceHeader header_;
  std::int64_t events_ = 0;
  bool inside_ = false;  ///< a part of step_ has been read
  TraceStep step_;
};

}  // namespace

TraceHeader read_trace(std::istream& in,
                       std::string_view name,
                       const std::function<void(const TraceHeader&, const TraceStep&)>& step) {
  return Reader(name, step).read(in);
}

}  // namespace stagecraft::tools
