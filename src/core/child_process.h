#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gradflow {

/// One end of a connection between two processes of this machine: whole messages, in order, both ways.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  ~Channel();
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Sends a message of 1 byte to 100 kB, waiting while the other end has many to read. False when it is gone.
  bool send(std::string_view message) const;
  /// The next message, waited for; nothing when the other end is closed and no message is left.
  std::optional<std::string> receive() const;
  /// No more messages from here: the other end receives those sent, then nothing.
  void close_sending() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// How a process ended.
struct ProcessEnd {
  int code = 0;    ///< of its exit; meaningless after a signal
  int signal = 0;  ///< that ended it, else 0

  bool good() const { return code == 0 && signal == 0; }
  /// "exit code 1", "signal 9 (Killed)"
  std::string words() const;
};

/// A process forked from this one, with all that stands in memory, and connected by a channel. It must be forked while
/// this process has a single thread, and ends (by SIGKILL) when this process does.
class ChildProcess {
 public:
  /// `work` runs in the child, which ends with code 0 when it returns and 1 when it throws. Throws Error when the
  /// system has no room for another process.
  explicit ChildProcess(const std::function<void(Channel&)>& work);
  /// Kills it unless somebody has waited for its end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  const Channel& channel() const { return channel_; }
  pid_t pid() const { return pid_; }
  void send_signal(int signal) const;
  /// Waits until it has ended. Call once.
  ProcessEnd wait();

 private:
  pid_t pid_ = -1;
  Channel channel_{-1};
};

}  // namespace gradflow
