// SPDX-License-Identifier: Apache-2.0
/** Subscriptions as they are on the wire: to whom events are sent, by web hook or mail. */
import type { Instant, Link } from "./types.ts";

export interface Subscription {
  id: string;
  project_id: string | null;
  user_id: string;
  channel: "webhook" | "mail";
  url: string | null;
  events: string[];
  lease_id: string | null;
  batch: boolean;
  state: "unconfirmed" | "active" | "paused" | "disabled";
  reason: string | null;
  position: number;
  /** How many entries may still have to be sent. */
  behind: number;
  last_delivered_at: Instant | null;
  failing_since: Instant | null;
  /** Messages that were refused for good and are kept, and those that are not any more. */
  dead: number;
  dropped: number;
  digest: "none" | "daily";
  time_zone: string;
  secret: string | null;
}

export interface DeliveryFailure {
  id: string;
  position: number;
  type: string;
  subject: string;
  reason: string;
  at: Instant;
}

export interface SubscriptionList {
  subscriptions: Subscription[];
  links: Link[];
}
