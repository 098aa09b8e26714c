#include "stagecraft/actors/trainer/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <exception>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/trainer/state/checkpoint_file.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/files/disk.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/home_process.h"
#include "stagecraft/base/process/process_end.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kEnd = ".ckpt";
constexpr std::string_view kPart = ".part-";  // WF-2
constexpr std::size_t kPartDigits = 8;

std::string path_of(const std::string& folder, std::int64_t step) {
  return (fs::path(folder) / fmt::format("{}{:09}{}", kPrefix, step, kEnd)).string();
}

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kEnd) ||
      name.size() <= kPrefix.size() + kEnd.size()) {
    return std::nullopt;
  }
  const std::string_view digits =
      name.substr(kPrefix.size(), name.size() - kPrefix.size() - kEnd.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  return error == std::errc() && end == digits.data() + digits.size() && step >= 0
             ? std::optional(step)
             : std::nullopt;
}

/// Returns whether this is the name of a half-written checkpoint: NAME.ckpt.part-XXXXXXXX.
bool is_half_written(std::string_view name) {
  const std::size_t begin = name.rfind(kPart);
  if (begin == std::string_view::npos || !name.substr(0, begin).ends_with(kEnd)) {
    return false;
  }
  const std::string_view digits = name.substr(begin + kPart.size());
  return digits.size() == kPartDigits &&
         std::ranges::all_of(digits, [](unsigned char digit) { return std::isxdigit(digit) != 0; });
}

struct Kept {
  std::int64_t step = 0;
  std::string path;
};

[[noreturn]] void unusable(const std::string& folder, const std::error_code& why) {
  throw Error(Errc::UsageFile,
              fmt::format("'{}' cannot be used as a folder of checkpoints: {}; name another",
                          folder,
                          why.message()));
}

/// Calls `visit` with each name in the folder.
void for_each_name(const std::string& folder,
                   const std::function<void(const std::string&)>& visit) {
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    visit(entry->path().filename().string());
  }
  if (failure) {
    unusable(folder, failure);
  }
}

/// Returns the checkpoints of the folder, newest first.
std::vector<Kept> checkpoints_in(const std::string& folder) {
  std::vector<Kept> all;
  for_each_name(folder, [&](const std::string& name) {
    if (const auto step = step_of(name)) {
      all.push_back({*step, (fs::path(folder) / name).string()});
    }
  });
  std::ranges::sort(all, std::ranges::greater(), &Kept::step);
  return all;
}

/// Locks a folder for this process. On a file system without locks, every process gets it.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : fd_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0) {
      unusable(folder, {errno, std::generic_category()});
    }
    alone_ = flock(fd_, LOCK_EX | LOCK_NB) == 0;
    if (!alone_ && errno == EWOULDBLOCK) {
      close(fd_);
      throw Error(
          Errc::UsageFile,
          fmt::format("expected a folder of checkpoints for this run alone, but another run "
                      "writes to '{}'; name another folder, or wait for its end",
                      folder));
    }
  }
  ~FolderLock() { close(fd_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  [[nodiscard]] bool alone() const { return alone_; }

 private:
  int fd_;
  bool alone_ = false;
};

/// Returns the newest whole checkpoint of the folder, open; null if there is none. Adds an error to
/// `broken` for each newer one.
std::unique_ptr<CheckpointReader> newest_in(const std::string& folder, std::vector<Error>& broken) {
  std::error_code failure;
  if (!fs::exists(folder, failure)) {
    if (failure) {
      unusable(folder, failure);  // it may be there
    }
    return nullptr;
  }
  for (const Kept& kept : checkpoints_in(folder)) {
    try {
      return std::make_unique<CheckpointReader>(kept.path);
    } catch (const Error& error) {
      broken.push_back(error);
    }
  }
  return nullptr;
}

/// Makes the folder, and those above it. Their names survive the end of the machine, because a file
/// survives it only together with its folder. Keeps CS-5.
void make_folder(const fs::path& folder, Disk& disk) {
  if (!folder.has_filename()) {
    if (folder.has_relative_path()) {  // "runs/first/", not "/"
      make_folder(folder.parent_path(), disk);
    }
    return;
  }
  std::error_code failure;
  if (!fs::is_directory(folder, failure)) {
    make_folder(folder.parent_path(), disk);
    if (disk.make_folder(folder.string()) != 0 && errno != EEXIST) {
      unusable(folder.string(), {errno, std::generic_category()});
    }
  }
  // One that exists, too: an earlier try may have made it and failed here.
  const fs::path above = folder.has_parent_path() ? folder.parent_path() : ".";
  if (disk.synchronize_folder(above.string()) != 0) {
    unusable(folder.string(), {errno, std::generic_category()});
  }
}

}  // namespace

CheckpointSearch find_checkpoint(const std::string& folder) {
  CheckpointSearch search;
  if (const auto file = newest_in(folder, search.broken)) {
    search.newest = {
        .path = file->path(), .step = file->header().step, .seed = file->header().seed};
  }
  return search;
}

struct CheckpointFolder::Impl {
  const HomeProcess home;
  const std::string folder;
  const std::size_t keep;
  const FolderLock lock;
  const std::shared_ptr<Disk> disk = Disk::current();  // the thread's too
  // The thread writes `outcome`, then `finished`; `outcome` is read only after the second is true.
  std::optional<SavedCheckpoint> outcome;
  std::atomic<bool> finished{true};
  std::unique_ptr<Clock::Thread> writer;

  Impl(const std::string& f, int k) : folder(f), keep(static_cast<std::size_t>(k)), lock(f) {
    if (lock.alone()) {
      remove_parts();
    }
    if (disk->synchronize_folder(folder) != 0) {  // keeps CS-6
      unusable(folder, {errno, std::generic_category()});
    }
    const WholeFile tried(path_of(folder, 0));
  }

  /// Keeps CS-4.
  void remove_parts() const {
    std::vector<std::string> parts;
    for_each_name(folder, [&](const std::string& name) {
      if (is_half_written(name)) {
        parts.push_back((fs::path(folder) / name).string());
      }
    });
    for (const std::string& part : parts) {
      disk->remove(part);
    }
  }

  /// Reads the state, and lets a thread publish its file.
  void begin(Trainer& trainer) {
    SavedCheckpoint saved;
    std::unique_ptr<CheckpointSave> written;
    try {
      written = trainer.begin_save([&](std::int64_t step) {
        saved = {.step = step, .path = path_of(folder, step)};
        return saved.path;
      });
    } catch (const Error& error) {
      if (error.code() != Errc::UsageFile && error.code() != Errc::CheckpointFormat) {
        throw;  // the state could not be read
      }
      saved.failure = error;
      outcome = std::move(saved);
      return;
    }
    finished = false;
    try {
      std::shared_ptr<CheckpointSave> file = std::move(written);
      writer = Clock::current()->start([this, saved, file = std::move(file)]() mutable {
        const process_end::AtWork at_work;
        const DiskOfThread scope(disk);
        publish(saved, std::exchange(file, nullptr));
        outcome = std::move(saved);
        finished = true;
      });
    } catch (const std::exception& error) {  // no thread, or no memory for one
      finished = true;
      saved.failure = not_written(saved, error);
      outcome = std::move(saved);
    }
  }

  static Error not_written(const SavedCheckpoint& saved, const std::exception& why) {
    return {Errc::UsageFile, fmt::format("'{}' was not written: {}", saved.path, why.what())};
  }

  void publish(SavedCheckpoint& saved, std::shared_ptr<CheckpointSave> written) const {
    try {
      written->publish();
      remove_older(saved.step);
    } catch (const Error& error) {
      saved.failure = error;
    } catch (const std::exception& error) {
      saved.failure = not_written(saved, error);
    }
  }

  /// Keeps CS-2.
  void remove_older(std::int64_t step) const {
    std::size_t kept = 0;
    for (const Kept& one : checkpoints_in(folder)) {
      if (one.step <= step && ++kept > keep) {
        disk->remove(one.path);
      }
    }
  }

  std::optional<SavedCheckpoint> wait() {
    writer = nullptr;
    return std::exchange(outcome, std::nullopt);
  }
};

CheckpointFolder::CheckpointFolder(const std::string& folder, int keep) {
  if (keep < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("expected at least one checkpoint to keep, found {}", keep));
  }
  make_folder(folder, *Disk::current());
  impl_ = std::make_unique<Impl>(folder, keep);
}

CheckpointFolder::~CheckpointFolder() {
  if (!impl_->home.is_here() || (process_end::begun() && !impl_->finished)) {
    (void)impl_.release();  // its thread is the parent's, or parked (PE-1)
    return;
  }
  if (const auto last = impl_->wait(); last && last->failure) {
    log(Level::Error,
        "checkpoint not saved",
        {{"step", last->step}, {"why", last->failure->message()}});
  }
}

std::optional<SavedCheckpoint> CheckpointFolder::save(Trainer& trainer) {
  impl_->home.require_here("this folder of checkpoints");
  std::optional<SavedCheckpoint> before = impl_->wait();  // first: keeps CS-1
  try {
    impl_->begin(trainer);
  } catch (...) {
    impl_->outcome = std::move(before);
    throw;
  }
  return before;
}

std::optional<SavedCheckpoint> CheckpointFolder::done() {
  return impl_->finished ? impl_->wait() : std::nullopt;
}

std::optional<SavedCheckpoint> CheckpointFolder::wait() {
  impl_->home.require_here("this folder of checkpoints");
  return impl_->wait();
}

std::optional<std::string> CheckpointFolder::resume(Trainer& trainer, SeedFrom seed_from) {
  (void)wait();
  std::vector<Error> broken;
  const auto file = newest_in(impl_->folder, broken);
  for (const Error& error : broken) {
    log(Level::Warning, "checkpoint passed over", {{"why", error.message()}});
  }
  if (file == nullptr) {
    return std::nullopt;
  }
  trainer.load(*file, seed_from);
  return file->path();
}

}  // namespace stagecraft
